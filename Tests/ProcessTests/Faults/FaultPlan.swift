import Conflux

/// A fault in a cluster under load. A seed decides which faults happen, and to which process.
enum Fault: Hashable, CustomStringConvertible {
    enum Victim: Hashable {
        case sequencer
        case worker(Int)
        case dispatcher(Int)
    }

    /// The process is killed by SIGKILL, and started again.
    case kill(Victim)
    /// The process is stopped by SIGSTOP, and continued later.
    case stop(Victim)
    /// All connections through the proxies break at once.
    case cut
    /// The proxies delay what passes through them.
    case delay

    var description: String {
        switch self {
        case .kill(let victim): "kill \(victim)"
        case .stop(let victim): "stop \(victim)"
        case .cut: "cut"
        case .delay: "delay"
        }
    }

    /// Faults in an order that the generator decides.
    ///
    /// - Parameters:
    ///   - count: How often the sequencer, each worker and a dispatcher are killed. Each other fault
    ///     happens as often.
    ///   - workers: How many workers there are.
    ///   - random: The generator.
    /// - Returns: The faults.
    static func plan(_ count: Int, workers: Int, using random: inout SplitMix64) -> [Fault] {
        var kinds: [Fault] = [.kill(.sequencer), .kill(.dispatcher(0)), .cut, .delay]
        kinds += (0..<workers).map { .kill(.worker($0)) }
        var plan = kinds.flatMap { Array(repeating: $0, count: count) }
        for _ in 0..<count {
            let victims: [Victim] = [
                .sequencer, .worker(Int.random(in: 0..<workers, using: &random)),
                .dispatcher(Int.random(in: 0...1, using: &random)),
            ]
            plan.append(.stop(victims.randomElement(using: &random)!))
        }
        return plan.shuffled(using: &random)
    }
}
