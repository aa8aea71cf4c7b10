/// Ends a session or a connection. Either side may send it.
///
/// The header and the fields of this message are the same in every version of the protocol, so that
/// peers of different versions can still tell each other why they part.
public struct Bye: Sendable, Equatable {
    /// The number of the hello that it answers; 0 if it answers none.
    public var request: UInt64
    /// The reason.
    public var code: ByeCode
    /// What to do, for people.
    public var message: String

    /// Makes a message.
    public init(code: ByeCode, message: String, answering request: UInt64 = 0) {
        self.request = request
        self.code = code
        self.message = message
    }
}

/// Why a session or a connection ends.
public enum ByeCode: UInt16, Sendable, Hashable, CaseIterable {
    /// The node leaves, or the sequencer stops.
    case leaving = 1
    /// This connection has no session in this epoch: say hello again (rule 8).
    case rejoin = 2
    /// The session is not remembered: actions without a receipt have an unknown outcome (rule 8).
    case forgotten = 3
    /// A live node has this name (rule 10).
    case nameTaken = 4
    /// The peer speaks another version of the protocol.
    case version = 5
    /// The peer does not speak this kind of message.
    case unsupported = 6
    /// The frame breaks the grammar.
    case malformed = 7
    /// A table of the sequencer is full.
    case tableFull = 8
    /// A newer term has begun.
    case superseded = 9
    /// A live process has this session key (rule 11).
    case keyTaken = 10
    /// The connection's key may not do this.
    case notAllowed = 11
    /// The sequencer runs but does not serve: its log fails, or it stands by and knows of none that
    /// serves. Say hello until one answers.
    case notServing = 12
}

/// A standby's answer to a hello: the address of the serving sequencer, as far as the standby knows it.
public struct Redirect: Sendable, Equatable {
    /// The number of the hello that it answers.
    public var request: UInt64
    /// The address of the serving sequencer: `tcp://host:port`.
    public var address: String

    /// Makes a message.
    public init(request: UInt64, address: String) {
        self.request = request
        self.address = address
    }
}
