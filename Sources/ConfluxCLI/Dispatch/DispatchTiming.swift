import Conflux
import ConfluxArguments
import ConfluxNode
import ConfluxProtocol

/// The options of `conflux dispatch` that set timers.
enum DispatchTiming {
    private static let after = Option<Duration?>(
        "--after", parse: .duration(in: .zero...TimerOrder.spanMax),
        summary: """
            Set a timer: the sequencer dispatches the action after this time, also if this command, or the sequencer, \
            has ended meanwhile.
            """)
    private static let time = Option<Timestamp?>(
        "--at", parse: .time,
        summary: """
            Set a timer for a time of day, with Z or the offset from UTC: 2030-01-01T00:00:00Z. At once if it has passed.
            """)
    private static let every = Option<Duration?>(
        "--every", parse: .duration(in: TimerOrder.intervalMin...TimerOrder.spanMax),
        summary: "Let the timer fire again and again, this time after the last one.")
    private static let key = Option<String?>(
        "--key", parse: .timerKey,
        summary: """
            What conflux timers --cancel ends the timer by. A timer of the target with the same key ends.
            """)

    static let parameters: [any ParameterKey] = [after, time, every, key]
    static let group = ExclusiveGroup.atMostOne(after, time)

    /// Checks the options together with the others.
    ///
    /// - Parameters:
    ///   - arguments: The command line.
    ///   - isStream: Whether there may be several actions.
    ///   - excluded: Other options that are given, and what each of them is about.
    /// - Throws: ``UsageError``, if options make no sense together.
    static func validate(
        _ arguments: Invocation, isStream: Bool, excluding excluded: [(option: String, why: String)]
    ) throws(UsageError) {
        guard arguments[after] != nil || arguments[time] != nil else {
            for (option, isGiven) in [
                ("--every", arguments[every] != nil), ("--key", arguments[key] != nil),
            ] where isGiven {
                throw arguments.usageError(
                    "\(option) is about a timer: give --after or --at, too, which say when it fires first"
                )
            }
            return
        }
        if isStream, arguments[key] != nil {
            throw arguments.usageError(
                "--key is the key of one timer: each line would replace the one before it")
        }
        if let (option, why) = excluded.first {
            throw arguments.usageError(
                "\(option) \(why). Leave it out, or dispatch now, without --after and --at")
        }
    }

    /// When the actions are dispatched; nil for now.
    static func timing(of arguments: Invocation) -> Timing? {
        let due: TimerOrder.Due
        if let span = arguments[after] {
            due = .after(span)
        } else if let time = arguments[time] {
            due = .at(time)
        } else {
            return nil
        }
        return Timing(due: due, interval: arguments[every], key: arguments[key])
    }
}

extension ValueParser where Value == String {
    /// The key of a timer.
    static var timerKey: ValueParser<String> {
        ValueParser(
            "KEY", expecting: "the key of a timer: 1 to \(TimerKey.nameBytesMax) bytes of UTF-8"
        ) { (1...TimerKey.nameBytesMax).contains($0.utf8.count) ? $0 : nil }
    }
}
