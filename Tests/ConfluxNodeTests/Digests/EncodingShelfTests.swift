@testable import ConfluxProtocol
import Testing

@testable import ConfluxNode

/// The encodings of states, of which the sequencer requests parts for a snapshot.
struct EncodingShelfTests {
    private func place(_ store: String, _ sequence: UInt64) throws -> SnapshotPlace {
        SnapshotPlace(
            store: try #require(StoreName(store)), life: SequenceNumber(1),
            sequence: SequenceNumber(sequence))
    }

    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 251) } }

    @Test func `encodings are sent in parts, and reassembled whole`() throws {
        let shelf = EncodingShelf()
        let place = try place("room/1", 7)
        shelf.keep(bytes(1_000), at: place)
        var whole: [UInt8] = []
        while whole.count < 1_000 {
            let part = shelf.part(
                SnapshotRequest(place: place, offset: UInt64(whole.count), limitBytes: 300))
            #expect(part.byteCount == 1_000)
            #expect(part.offset == UInt64(whole.count))
            whole += part.bytes
        }
        #expect(whole == bytes(1_000))
        let behind = SnapshotRequest(place: place, offset: 1_000, limitBytes: 300)
        #expect(shelf.part(behind).isNone)
    }

    @Test func `the last two points of a store are kept`() throws {
        let shelf = EncodingShelf()
        for number in 1...3 { shelf.keep(bytes(10), at: try place("room/1", UInt64(number))) }
        #expect(shelf.encoding(at: try place("room/1", 1)) == nil)
        #expect(shelf.encoding(at: try place("room/1", 2)) != nil)
        #expect(shelf.encoding(at: try place("room/1", 3)) != nil)
        shelf.remove(try #require(StoreName("room/1")))
        #expect(shelf.encoding(at: try place("room/1", 3)) == nil)
    }

    @Test func `above the bound the oldest encodings are dropped, and a too large one is not kept`()
        throws
    {
        let shelf = EncodingShelf(bytesMax: 100)
        for number in 1...3 { shelf.keep(bytes(40), at: try place("room/\(number)", 5)) }
        #expect(shelf.encoding(at: try place("room/1", 5)) == nil)
        #expect(shelf.encoding(at: try place("room/2", 5)) != nil)
        shelf.keep(bytes(101), at: try place("room/4", 5))
        #expect(shelf.encoding(at: try place("room/4", 5)) == nil)
        #expect(shelf.encoding(at: try place("room/3", 5)) != nil)
    }
}
