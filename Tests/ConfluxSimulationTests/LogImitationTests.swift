import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxSimulation

/// The log on the simulated disk behaves like the log in memory, whatever it is asked.
struct LogImitationTests {
    /// The result of a call.
    private enum Answer: Equatable {
        case done(String)
        case failed(LogError.Code)
    }

    private static func answer(_ call: () throws -> Any) -> Answer {
        do {
            return .done("\(try call())")
        } catch let error as LogError {
            return .failed(error.code)
        } catch {
            return .done("\(error)")
        }
    }

    /// Draws a call and its arguments, to be made to each log.
    private static func draw(
        _ random: inout SimulationRandom, endingAt last: SequenceNumber, epoch: Epoch
    ) -> (any ActionLog) throws -> Any {
        let number = SequenceNumber(UInt64(random.int(in: 0...Int(last.rawValue) + 2)))
        let count = UInt64(random.int(in: 1...3))
        let snapshot = SavedSnapshot(
            store: StoreName(state: .shared, instance: .shared), life: SequenceNumber(1),
            sequence: random.chance(0.8) ? last : number, schemaVersion: 1, digest: Digest(of: [7]),
            byteCount: 1, kind: random.chance(0.8) ? .confirmed : .aside)
        switch random.int(in: 0...12) {
        case 0: return { try $0.claim(raisingEpochBy: count).epoch }
        case 1: return { try $0.read(from: number, limitBytes: Int(count)).map(\.first) }
        case 2: return { try $0.checkpoint(through: number)?.sequence as Any }
        case 3: return { try $0.snapshots().map(\.key) }
        case 4: return { try $0.removeSnapshots(of: snapshot.store) }
        case 5: return { try $0.truncate(below: number, limitBytes: 1) }
        case 6:
            return { try $0.readSnapshot(of: snapshot.key, from: 0, limitBytes: 9) as Any }
        case 7, 8:
            let place = random.chance(0.8) ? last : number
            return { log in
                try SavedCheckpoint(sequence: place, bytes: [1, 2]).pieces().map {
                    try log.save($0)
                }
            }
        case 9: return { try $0.save(SnapshotPiece(snapshot: snapshot, offset: 0, bytes: [7])) }
        default:
            // Sometimes after an end that doesn't exist, or with a former epoch.
            let end = random.chance(0.9) ? last : number
            let epoch = random.chance(0.9) ? epoch : Epoch(1)
            let commit = LoggedCommit(
                first: end.next, last: end.advanced(by: count), epoch: epoch,
                bytes: [UInt8(count)])
            return { try $0.append(commit, expecting: end, forced: false) }
        }
    }

    @Test(arguments: UInt64(1)...40)
    func `the simulated log and the log in memory give the same answers`(seed: UInt64) throws {
        var random = SimulationRandom(seed: seed)
        let disk = SimulatedDisk(id: .random(), durability: .fsync)
        let memory = MemoryLog()
        // Each log has two processes. The one with the latest claim owns it.
        let simulated = (0..<2).map { _ in
            SimulatedLog(
                disk: disk, nextFault: { _ in .none }, appended: { _ in }, saved: { _, _ in })
        }
        let real = [MemoryLog(sharing: memory), MemoryLog(sharing: memory)]
        for step in 0..<200 {
            let process = random.chance(0.9) ? 0 : 1
            let call = Self.draw(&random, endingAt: disk.last, epoch: disk.epoch)
            let answers = (
                Self.answer { try call(simulated[process]) },
                Self.answer { try call(real[process]) }
            )
            #expect(answers.0 == answers.1, "seed \(seed), step \(step)")
            #expect(
                simulated[0].last == memory.last && simulated[0].floor == memory.floor,
                "seed \(seed), step \(step)")
            guard answers.0 == answers.1 else { return }
        }
        #expect(memory.last > .zero)
    }
}
