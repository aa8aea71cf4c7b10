/// What a poller can wait for: a socket that connects, of libzmq's, or one that serves, of the system's.
public class PolledSocket {
    /// How many messages were thrown away because they had not the form that is spoken here: one
    /// frame. The sender speaks another protocol.
    public internal(set) var malformedCount: UInt64 = 0

    init() {}

    /// Whether `close()` was called.
    public var isClosed: Bool { true }

    /// Whether it may be ready though its descriptor does not say so.
    var mayBeReady: Bool { false }

    /// What says when it is ready, or may be.
    func descriptor() throws(ZeroMQError) -> Int32 { throw .socketClosed }

    /// What it is ready for, by the numbers of `poll`.
    ///
    /// - Parameters:
    ///   - events: What is asked about.
    ///   - signals: What its descriptor says.
    /// - Returns: Those of the events that it is ready for.
    /// - Throws: `closed` or `terminated`.
    func ready(for events: Int16, _ signals: Int16) throws(ZeroMQError) -> Int16 { 0 }
}
