import Conflux
import ConfluxNode
import Foundation
import Synchronization

/// Notes when each of its actions comes.
private struct Alarm: Model {
    static let name = "alarm"
    var rung = 0
    enum Action: Codable, Sendable { case ring(number: Int) }

    mutating func apply(_ action: Action, _ context: ActionContext) { rung += 1 }
}

/// The processes that set timers.
enum TimerRoles {
    /// Sets timers that fire soon, and tells how late each was.
    static func timers(at place: Place, count: Int, isBurst: Bool) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        let store = try await node.store(Alarm.self)
        let rung = Mutex([Int64](repeating: 0, count: count))
        let (done, end) = AsyncStream<Void>.makeStream()
        store.committedActions.observe { commit in
            guard case .ring(let number) = commit.action, number < count else { return }
            let now = wallNanoseconds()
            let isLast = rung.withLock { rung in
                rung[number] = now
                return rung.allSatisfy { $0 > 0 }
            }
            if isLast { end.finish() }
        }
        _ = NodeRoles.begin()
        var handles: [(DispatchHandle, Duration)] = []
        let burst = Timestamp(wallNanoseconds() + 3_000_000_000)
        for number in 0..<count {
            let delay = Duration.milliseconds(1_000 + number * 2_000 / count)
            handles.append(
                isBurst
                    ? (store.dispatch(.ring(number: number), at: burst), .zero)
                    : (store.dispatch(.ring(number: number), after: delay), delay))
        }
        var due: [Int64] = []
        for (handle, delay) in handles {
            let set = try await handle.receipt().timestamp
            due.append(
                isBurst ? burst.rawValue : set.rawValue + Int64(delay / .nanoseconds(1)))
        }
        for await _ in done {}
        let times = rung.withLock { rung in
            zip(rung, due).map { UInt64(max(0, $0 - $1)) }
        }
        Control.tell(.times(times))
        await node.close()
    }

    /// Sets timers that fire hours later: every other one at a time of day.
    static func pendingTimers(at place: Place, count: Int) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        let store = try await node.store(Alarm.self)
        _ = NodeRoles.begin()
        let later = wallNanoseconds() + 36_000_000_000_000
        for first in stride(from: 0, to: count, by: 1_000) {
            var last: DispatchHandle?
            for number in first..<min(count, first + 1_000) {
                last =
                    number.isMultiple(of: 2)
                    ? store.dispatch(.ring(number: number), after: .seconds(36_000 + number))
                    : store.dispatch(
                        .ring(number: number), at: Timestamp(later + Int64(number) * 1_000_000))
            }
            try await last?.receipt()
        }
        await node.close()
        Control.tell(.times([]))
    }

    /// Nanoseconds since 1970 UTC. The sequencer is on the same machine.
    private static func wallNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
