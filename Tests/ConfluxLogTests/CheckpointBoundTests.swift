import ConfluxVocabulary
import Testing

@testable import ConfluxLog

struct CheckpointBoundTests {
    @Test
    func `a checkpoint that would be larger than the log takes is refused at its first piece`()
        throws
    {
        let log = MemoryLog()
        _ = try log.claim()
        try log.append(.sample(1...10))
        let bytes = [UInt8](repeating: 1, count: 1 << 20)[...]
        func code(_ count: Int) -> LogError.Code? {
            let piece = CheckpointPiece(
                sequence: SequenceNumber(10), index: 0, count: UInt32(count), bytes: bytes)
            do throws(LogError) {
                try log.save(piece)
                return nil
            } catch {
                return error.code
            }
        }
        let most = SavedCheckpoint.bytesMax / bytes.count
        #expect(code(most + 1) == .invalidCheckpoint)
        #expect(code(most) == nil)
    }
}
