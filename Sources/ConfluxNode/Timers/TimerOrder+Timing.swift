import Conflux
import ConfluxProtocol
import ConfluxVocabulary

extension TimerOrder {
    /// Makes an order.
    ///
    /// - Parameters:
    ///   - timing: When it fires.
    ///   - actions: What it dispatches then: the target and the encoding of each action. Not empty.
    /// - Throws: `invalidAction`, if the actions fit into no batch.
    init(
        _ timing: Timing, _ actions: [(target: BatchTarget, payload: [UInt8])]
    ) throws(DispatchError) {
        var builder = BatchBuilder()
        for (target, payload) in actions {
            guard builder.canAppend(target: target, payloadBytes: payload.count) else {
                throw .tooLargeTogether(builder.limits)
            }
            builder.append(target: target, payload: payload)
        }
        self.init(
            key: timing.key, due: timing.due, interval: timing.interval,
            actions: builder.finish(firstCounter: 1, settled: 0, isAtomic: actions.count > 1))
    }
}

extension BatchTarget {
    /// The row of entries that set and end timers.
    static let timers = BatchTarget(target: .timers, schemaVersion: 1, coding: .compact)
}

extension Outbox {
    /// Appends an entry that sets or ends a timer.
    package func submit(_ request: TimerRequest, mayWait: Bool) -> DispatchHandle {
        let payload = request.payload
        guard payload.count <= limits.payloadBytesMax else {
            return DispatchHandle(.failed(.payloadTooLarge(payload.count, limits.payloadBytesMax)))
        }
        return submit([(.timers, payload)], on: [], mayWait: mayWait)[0]
    }
}
