import Dispatch
import Testing

@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// Reading the authorised keys again.
struct KeyReloadTests {
    private func asker(_ number: UInt64) -> KeyReloads.Asker {
        KeyReloads.Asker(connection: ConnectionID(rawValue: number), question: number)
    }

    @Test func `so many clients wait for a reading, and a further one is told to ask later`()
        async throws
    {
        let (outcomes, told) = AsyncStream.makeStream(of: KeyReloads.Outcome.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let gate = DispatchSemaphore(value: 0)
        var reloads = KeyReloads(
            read: {
                begin.yield()
                gate.wait()
                return .success(AuthorizedKeys())
            }, tell: { told.yield($0) })
        for number in 1...KeyReloads.waitingMax {
            #expect(reloads.begin(for: asker(UInt64(number))) == nil)
        }
        guard case .failed(.tableFull, _)? = reloads.begin(for: asker(100)) else {
            Issue.record("a further client waits")
            return
        }
        // Who reloads in the process itself needs no place.
        #expect(reloads.begin(for: nil) == nil)
        for _ in 0...KeyReloads.waitingMax { gate.signal() }
        var seen = begun.makeAsyncIterator()
        var ended = outcomes.makeAsyncIterator()
        for number in 1...KeyReloads.waitingMax {
            _ = await seen.next()
            let outcome = try #require(await ended.next())
            // One after another, in the order in which they were asked for.
            #expect(outcome.asker?.question == UInt64(number))
            #expect(reloads.end(outcome) == .reloaded(count: 0))
        }
        #expect(reloads.begin(for: asker(101)) == nil)
        gate.signal()
    }

    @Test
    func `what can't be read is told with its reason, and so is that there is nothing to read`() {
        var reloads = KeyReloads(
            read: { .failure(AuthorizedKeysError("line 3: no")) }, tell: { _ in })
        let outcome = KeyReloads.Outcome(
            asker: nil, result: .failure(AuthorizedKeysError("line 3: no")))
        #expect(reloads.end(outcome) == .failed(.reloadFailed, message: "line 3: no"))
        var none = KeyReloads(read: nil, tell: { _ in })
        guard case .failed(.reloadFailed, let message)? = none.begin(for: asker(1)) else {
            Issue.record("there was a file to read")
            return
        }
        #expect(message.contains("--authorized"))
    }
}
