import Conflux
import ConfluxVocabulary

/// Waits for the store, with a deadline.
extension TestStore {
    /// Waits for the outcome of a dispatch; nil if there is none in time.
    func end(
        of handle: DispatchHandle, isolation: isolated (any Actor)? = #isolation
    ) async -> Result<Receipt, DispatchError>? {
        let waiting = Task { () async -> Result<Receipt, DispatchError> in
            do throws(DispatchError) {
                return .success(try await handle.receipt())
            } catch {
                return .failure(error)
            }
        }
        let deadline = Deadline(in: timeout) { waiting.cancel() }
        let result = await waiting.value
        deadline.cancel()
        if case .failure(let error) = result, error.code == .cancelled { return nil }
        return result
    }

    /// Waits until the store's value was read for the first time.
    ///
    /// - Returns: Whether it was; if not, the test has failed.
    func hasBegun(
        at place: SourcePlace, isolation: isolated (any Actor)? = #isolation
    ) async -> Bool {
        if await journal.wait(within: timeout, { $0.last }) != nil { return true }
        reportStillness(at: place)
        return false
    }

    /// The value after all jobs that are in the store's lane now; nil if the store does not get that far in time.
    func present(
        at place: SourcePlace, isolation: isolated (any Actor)? = #isolation
    ) async -> Value? {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
        let reading = reading
        store.core.inspect { state, _ in
            if state != nil { continuation.yield(reading()) }
            continuation.finish()
        }
        let deadline = Deadline(in: timeout) { continuation.finish() }
        defer { deadline.cancel() }
        for await value in stream { return value }
        reportStillness(at: place)
        return nil
    }

    /// After this many rounds, `settled` no longer waits for other stores of the scope, which may be another test's.
    private static var roundsWhileBusy: Int { 100 }

    /// The value once no dispatch is under way in the store's scope; nil if that does not happen in time.
    func settled(
        at place: SourcePlace, isolation: isolated (any Actor)? = #isolation
    ) async -> Value? {
        let end = ContinuousClock.now + timeout
        var round = 0
        while true {
            let before = journal.present.noteCount
            let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
            store.core.scope.whenSettled { wasBusy in
                continuation.yield(wasBusy)
                continuation.finish()
            }
            let deadline = Deadline(in: end - .now) { continuation.finish() }
            var wasBusy: Bool?
            for await answer in stream { wasBusy = answer }
            deadline.cancel()
            guard let wasBusy else {
                reporter.report(
                    """
                    The store is not done within \(timeout): what was dispatched waits for a lock, for \
                    another store, or for a queue that is busy. End that before the test ends.
                    """, at: place)
                return nil
            }
            // What was committed meanwhile may have caused more dispatches, also through other stores.
            round += 1
            if journal.present.noteCount == before, !wasBusy || round >= Self.roundsWhileBusy {
                return await present(at: place)
            }
        }
    }

    func reportStillness(at place: SourcePlace) {
        reporter.report(
            """
            The store did nothing for \(timeout). Is its queue busy, or does a commit wait for something? If \
            it only takes long, raise `timeout`.
            """, at: place)
    }

    func reportSilence(of quotation: String, at place: SourcePlace) {
        reporter.report(
            """
            \(Self.begun(quotation)) was not committed within \(timeout). Is the flow paused by a lock, does the store \
            wait for another one, or is its queue busy? If it only takes long, raise `timeout`.
            """, at: place)
    }
}
