import Testing

@testable import ConfluxMonitoring

/// Which connections of the HTTP server end to make room, or because they take too long.
struct HTTPConnectionsTests {
    private let near: [UInt8] = [10, 0, 0, 1]
    private let far: [UInt8] = [192, 0, 2, 7]

    private func table(_ most: Int = 4) -> HTTPConnections {
        HTTPConnections(connectionsMax: most, requestMax: .seconds(10))
    }

    @Test func `the oldest connection of the address with most makes room`() {
        var table = table()
        #expect(table.begin(1, from: far, at: .zero) == nil)
        for socket in 2...4 as ClosedRange<Int32> {
            #expect(table.begin(socket, from: near, at: .zero) == nil)
        }
        #expect(table.begin(5, from: near, at: .zero) == 2)
        #expect(table.begin(6, from: near, at: .zero) == 3)
        #expect(table.begin(7, from: far, at: .zero) == 4)
        // Equally many of both: the oldest of all.
        #expect(table.begin(8, from: [10, 0, 0, 9], at: .zero) == 1)
        #expect(table.count == 4)
        // What has made room is reported as ended later, and counts no more.
        for socket in 2...4 as ClosedRange<Int32> { table.end(socket) }
        #expect(table.count == 4)
    }

    @Test func `one that has made a request stays, unless all have`() {
        var table = table()
        for socket in 1...4 as ClosedRange<Int32> { _ = table.begin(socket, from: near, at: .zero) }
        for socket in [1, 2] as [Int32] { table.admit(socket) }
        #expect(table.begin(5, from: near, at: .seconds(2)) == 3)
        #expect(table.begin(6, from: near, at: .seconds(2)) == 4)
        for socket in [5, 6] as [Int32] { table.admit(socket) }
        // All have: the oldest.
        #expect(table.begin(7, from: near, at: .seconds(4)) == 1)
        #expect(table.begin(8, from: near, at: .seconds(4)) == 7)
    }

    @Test func `a connection has a time for its request, whatever it sends`() {
        var table = table()
        for socket in 1...3 as ClosedRange<Int32> {
            _ = table.begin(socket, from: near, at: .seconds(Int(socket)))
        }
        table.admit(1)
        table.end(3)
        #expect(table.endOverdue(at: .seconds(10)).isEmpty)
        #expect(table.endOverdue(at: .seconds(11)) == [1])
        #expect(table.endOverdue(at: .seconds(11)).isEmpty)
        #expect(table.endOverdue(at: .seconds(13)) == [2])
        #expect(table.count == 0)
    }

    @Test func `all addresses of one IPv6 network share`() {
        var table = table(3)
        func address(_ network: UInt8, _ host: UInt8) -> [UInt8] {
            [0x20, 1, 0x0d, 0xb8, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, host]
        }
        _ = table.begin(1, from: address(1, 1), at: .zero)
        _ = table.begin(2, from: address(2, 1), at: .zero)
        _ = table.begin(3, from: address(2, 2), at: .zero)
        #expect(table.begin(4, from: address(2, 3), at: .zero) == 2)
    }

    @Test func `the time of a connection does not pass while its answer is owed`() {
        var connections = HTTPConnections(connectionsMax: 2, requestMax: .seconds(10))
        _ = connections.begin(1, from: [127, 0, 0, 1], at: .zero)
        connections.owe(1)
        #expect(connections.endOverdue(at: .seconds(100)) == [])
        connections.settle(1, at: .seconds(100))
        #expect(connections.endOverdue(at: .seconds(109)) == [])
        #expect(connections.endOverdue(at: .seconds(110)) == [1])
    }
}
