import ConfluxVocabulary

extension Target {
    /// The target of entries that set and end timers. No store takes them: the log itself keeps the timers (rule 26).
    public static let timers = Target.event(.timers)
}

/// What an entry for `Target.timers` says. It is the payload of the entry.
public enum TimerRequest: Sendable, Equatable {
    /// A timer begins. The number of the entry is the timer's.
    case set(TimerOrder)
    /// The timer with this key ends.
    case cancel(TimerKey)
}

/// What a timer does, and when.
public struct TimerOrder: Sendable, Equatable {
    /// When a timer fires for the first time.
    public enum Due: Sendable, Hashable {
        /// So long after its entry. The time that passes counts, whatever the wall clock shows.
        case after(Duration)
        /// When the log's time has come to this. At once, if it has passed.
        case at(Timestamp)
    }

    /// The longest time after which a timer fires, or fires again: a hundred years.
    public static let spanMax = Duration.seconds(100 * 365 * 86_400)
    /// The shortest time after which a timer fires again.
    public static let intervalMin = Duration.milliseconds(10)

    /// What to cancel or replace it by, together with the first target of its actions; nil if nothing can.
    public var key: String?
    /// When it fires for the first time.
    public var due: Due
    /// The time from one firing to the next; nil if it fires once. It counts from the time that was intended, so that
    /// the timer does not drift.
    public var interval: Duration?
    /// What it dispatches. Its counters mean nothing.
    public var actions: Batch

    /// Makes an order.
    public init(key: String?, due: Due, interval: Duration?, actions: Batch) {
        self.key = key
        self.due = due
        self.interval = interval
        self.actions = actions
    }

    /// The key, with its scope.
    var scopedKey: TimerKey? { key.map { TimerKey(target: actions.targets[0].target, name: $0) } }

    /// What is wrong with it, in words; nil if nothing is.
    var fault: String? {
        if let key, key.isEmpty || key.utf8.count > TimerKey.nameBytesMax {
            return "the key of a timer has 1 to \(TimerKey.nameBytesMax) bytes"
        }
        if case .after(let span) = due, span > Self.spanMax {
            return "a timer fires within a hundred years"
        }
        if let interval, interval < Self.intervalMin || interval > Self.spanMax {
            return "a timer repeats every 10 ms at most, and every hundred years at least"
        }
        if actions.isVoid || actions.hasConditions
            || actions.targets.contains(where: {
                if case .event = $0.target { true } else { false }
            })
        {
            return "a timer dispatches actions to stores and states, without conditions"
        }
        return nil
    }
}

/// What a timer can be cancelled by: a text, which means one timer for each target.
public struct TimerKey: Sendable, Hashable {
    /// The most bytes of the text.
    public static let nameBytesMax = 128

    /// The first target of the timer's actions.
    public var target: Target
    /// The text.
    public var name: String

    /// Makes a key.
    public init(target: Target, name: String) {
        self.target = target
        self.name = name
    }
}

/// A timer, as the sequencer lists it.
public struct TimerStatus: Sendable, Hashable {
    /// The number of the entry that set it.
    public var number: SequenceNumber
    /// The name of the connection's key that set it; nil if there were no keys.
    public var owner: Name?
    /// What it can be cancelled by, together with the first target.
    public var key: String?
    /// What its actions are for.
    public var targets: [Target]
    /// When it fires next.
    public var due: Timestamp
    /// The time from one firing to the next; nil if it fires once.
    public var interval: Duration?
}
