import Foundation

/// A subscriber that costs as little as possible: a TCP connection to a feed, which keeps the number of the newest entry.
final class FeedReader {
    let descriptor: Int32
    /// The number of the newest entry that has come, or that a beat has named; nil before a first message.
    private(set) var last: UInt64?
    private var bytes: [UInt8] = []

    /// Connects to `tcp://127.0.0.1:port`, and subscribes to everything.
    init(to address: String) throws {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw BenchError("no port: \(address)")
        }
        #if canImport(Glibc)
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        place.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        let failure = withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard failure == 0 else { throw BenchError("no connection to \(address)") }
        try send(
            [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Array("NULL".utf8)
                + [UInt8](repeating: 0, count: 48))
        var greeting = [UInt8](repeating: 0, count: 64)
        guard recv(descriptor, &greeting, greeting.count, Int32(MSG_WAITALL)) == 64 else {
            throw BenchError("\(address) does not greet")
        }
        let property = Array("\u{5}READY\u{B}Socket-Type\0\0\0\u{3}SUB".utf8)
        try send([4, UInt8(property.count)] + property + [0, 1, 1])
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit { close(descriptor) }

    private func send(_ bytes: [UInt8]) throws {
        guard write(descriptor, bytes, bytes.count) == bytes.count else {
            throw BenchError("a feed does not take a handshake")
        }
    }

    /// Takes what has come.
    func read() throws {
        var piece = [UInt8](repeating: 0, count: 16 << 10)
        let count = recv(descriptor, &piece, piece.count, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN { return }
            throw BenchError("a feed has ended")
        }
        bytes += piece[..<count]
        var start = 0
        while let (flags, body) = frame(from: start) {
            if flags & 4 == 0 { take(bytes[body]) }
            start = body.upperBound
        }
        bytes.removeFirst(start)
    }

    /// The next whole frame of ZMTP: its flags, and where its body is.
    private func frame(from start: Int) -> (UInt8, Range<Int>)? {
        guard bytes.count >= start + 2 else { return nil }
        let isLong = bytes[start] & 2 != 0
        guard bytes.count >= start + (isLong ? 9 : 2) else { return nil }
        let count =
            isLong
            ? bytes[start + 1..<start + 9].reduce(0) { $0 << 8 | Int($1) } : Int(bytes[start + 1])
        let body = start + (isLong ? 9 : 2)
        return bytes.count >= body + count ? (bytes[start], body..<body + count) : nil
    }

    private func take(_ message: ArraySlice<UInt8>) {
        func number(at offset: Int, _ count: Int) -> UInt64 {
            let start = message.startIndex + offset
            return message[start..<start + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        // After the header of a beat come the log and the number. In a commit, there are the log, two epochs, the first
        // number, the time, and how many entries it has.
        let header = 24
        guard message.count >= header + 24 else { return }
        let isCommit = message[message.startIndex + 5] == 0x81
        let newest =
            isCommit
            ? number(at: header + 32, 8) + number(at: header + 48, 4) - 1
            : number(at: header + 16, 8)
        last = max(last ?? 0, newest)
    }
}
