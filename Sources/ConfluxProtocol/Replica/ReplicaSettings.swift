import ConfluxVocabulary

/// Every bound and interval of a node's side of the protocol.
public struct ReplicaSettings: Sendable, Hashable {
    /// The node's unique name; nil for a process that needs none.
    public var name: Name?
    /// What the node is for.
    public var role: Hello.Role
    /// The first pause between two hellos; it doubles up to ``helloIntervalMax``.
    public var helloInterval: Duration = .milliseconds(250)
    /// The longest pause between two hellos.
    public var helloIntervalMax: Duration = .seconds(2)
    /// How long the feed, or the sequencer's answers, may be silent before the node takes the sequencer for gone. If no
    /// answer comes for a quarter of that time, the node asks whether the sequencer is alive.
    public var feedSilenceMax: Duration = .seconds(2)
    /// How long a hello may stay without a welcome before the node tries another address, if there is one.
    public var seekInterval: Duration = .seconds(1)
    /// How many redirects in a row the node follows at once (rule 46). After that, it follows one for each repeated
    /// hello.
    public var redirectsMax: Int = 4
    /// How long an answer may be due before the node says hello again, to check its session.
    public var answerPatience: Duration = .seconds(1)
    /// The most waits whose number is not known yet. A further one fails.
    public var waitersMax: Int = 1_024
    /// How long to wait before a discarded batch is submitted again. While no outcome comes, the
    /// pause doubles, up to four beat intervals.
    public var resubmitPause: Duration = .milliseconds(20)
    /// How long an answer to a fetch may take before the node asks again.
    public var fetchPatience: Duration = .seconds(1)
    /// The most that ``fetchPatience`` grows to. It doubles each time an answer is overdue.
    public var fetchPatienceMax: Duration = .seconds(16)
    /// The most bytes of commits that are asked for at once.
    public var fetchBytes: UInt32 = 256 << 10
    /// The most bytes of a snapshot that are asked for at once.
    public var loadBytes: UInt32 = 1 << 20
    /// The most snapshots that are loaded at once. Others wait.
    public var loadsMax: Int = 4
    /// The largest snapshot that is loaded. *At the bound* its store can't be opened.
    public var snapshotBytesMax: UInt64 = 1 << 30
    /// The most bytes of commits kept behind a hole in the feed. *At the bound* all of them are
    /// dropped, and fetched (rule 5).
    public var bufferBytesMax: Int = 16 << 20
    /// The most bytes of commits kept for stores that catch up. *At the bound* the oldest are
    /// dropped, and fetched again.
    public var recentBytesMax: Int = 32 << 20
    /// The most bytes of the feed's commits that were delivered and not handed to the stores. *At the bound* nothing
    /// is delivered, and what the feed brings is kept like commits behind a hole.
    public var deliveryBytesMax: Int = 64 << 20
    /// The most bytes of commits that stores catch up with, delivered and not handed to the stores. *At the bound* no
    /// more is delivered. It is small, so that a commit of the feed never waits long.
    public var catchUpBytesMax: Int = 256 << 10
    /// The shortest pause between two signs of life, whatever a welcome says about beats and
    /// silence.
    public var progressPauseMin: Duration = .milliseconds(5)

    /// Makes the default settings.
    ///
    /// - Parameters:
    ///   - name: The node's unique name, if it has one.
    ///   - role: What the node is for.
    public init(name: Name?, role: Hello.Role) {
        self.name = name
        self.role = role
    }
}
