import ConfluxVocabulary

/// The part of ZMTP 3.0 that this module implements: the greeting, and the commands of the mechanisms NULL and CURVE.
/// See [the RFC](https://rfc.zeromq.org/spec/23/).
enum ZMTP {
    /// The type of a socket, as one side states it.
    enum SocketType: String {
        case router = "ROUTER"
        case publisher = "XPUB"
        case dealer = "DEALER"
        case subscriber = "SUB"

        /// The socket types that its peers may have. A `REQ` is not served: it sends an empty frame before each request,
        /// waits for one before each answer, and takes no message that is not an answer.
        var peers: [String] {
            switch self {
            case .router: ["DEALER", "ROUTER"]
            case .publisher: ["SUB", "XSUB"]
            case .dealer: ["ROUTER"]
            case .subscriber: ["PUB", "XPUB"]
            }
        }

        /// What a peer of another type is told.
        var refusal: String {
            "\(otherSocketReason): a \(rawValue) serves \(peers.joined(separator: " and ")) only"
        }

        /// Whether it is the side that peers connect to.
        var isServing: Bool { self == .router || self == .publisher }

        /// Whether a peer is served only after it has subscribed. Otherwise it is served after the
        /// handshake.
        var awaitsSubscription: Bool { self == .publisher }
    }

    static let greetingBytes = 64
    /// The longest header of a frame: its flags, and its length in eight bytes.
    static let headerBytesMax = 9
    /// The most bytes of a command. What peers state about themselves is far shorter.
    static let commandBytesMax = 1_024

    static let moreFlag: UInt8 = 1
    static let longFlag: UInt8 = 2
    static let commandFlag: UInt8 = 4

    /// The security mechanism: how both sides of a connection identify each other.
    enum Mechanism: String {
        case null = "NULL"
        case curve = "CURVE"
    }

    /// The greeting. Its version is 3.0, so that subscriptions are messages. With CURVE it states
    /// whether this side is the server.
    static func greeting(_ mechanism: Mechanism, isServing: Bool = true) -> [UInt8] {
        [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 0]
            + padded(Array(mechanism.rawValue.utf8), to: 20)
            + [mechanism == .curve && isServing ? 1 : 0] + [UInt8](repeating: 0, count: 31)
    }

    /// A subscription to everything, as a message.
    static let subscription: [UInt8] = [1]

    /// What a socket states about itself at the end of the handshake.
    static func metadata(_ type: SocketType) -> [UInt8] {
        let value = Array(type.rawValue.utf8)
        return string("Socket-Type") + [0, 0, 0, UInt8(value.count)] + value
    }

    /// There is no room for another connection, or for another of the client's key.
    static let fullStatus = "300"
    /// The client's key is not authorised.
    static let refusedStatus = "400"
    /// The client expected another server's key.
    static let otherServerStatus = "500"

    /// How the reason begins if the types of the two sockets don't fit.
    static let otherSocketReason = "wrong socket type"

    /// The command that says why the connection will end: a status, which is a number of three digits that libzmq
    /// passes on to its user, or a text.
    static func error(_ status: String) -> [UInt8] { command("ERROR", string(status)) }

    /// The body of the answer to a ping.
    static func pong(_ context: Bytes) -> [UInt8] { string("PONG") + context }

    /// The header of a frame.
    struct Header {
        private let bytes: (UInt64, UInt64)
        /// 2 or ``headerBytesMax``.
        let byteCount: Int
        let isCommand: Bool

        init(bodyBytes: Int, isCommand: Bool = false) {
            self.isCommand = isCommand
            let flags = UInt64(isCommand ? commandFlag : 0)
            let count = UInt64(bodyBytes)
            if bodyBytes > 255 {
                byteCount = headerBytesMax
                // The flags, and the length with its highest byte first.
                bytes = (
                    ((flags | UInt64(longFlag)) << 56 | count >> 8).bigEndian,
                    (count << 56).bigEndian
                )
            } else {
                byteCount = 2
                bytes = ((flags << 56 | count << 48).bigEndian, 0)
            }
        }

        func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
            withUnsafeBytes(of: bytes) {
                body(UnsafeRawBufferPointer(rebasing: $0[..<byteCount]))
            }
        }
    }

    /// A frame's header as an array.
    static func header(bodyBytes: Int, isCommand: Bool = false) -> [UInt8] {
        Header(bodyBytes: bodyBytes, isCommand: isCommand).withBytes { Array($0) }
    }

    /// A command of less than 256 bytes, as a frame.
    static func command(_ name: String, _ data: [UInt8]) -> [UInt8] { command(string(name) + data) }

    static func command(_ body: [UInt8]) -> [UInt8] { [commandFlag, UInt8(body.count)] + body }

    private static func string(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }

    private static func padded(_ bytes: [UInt8], to count: Int) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }
}

/// A peer violated ZMTP, or a bound. Its connection ends.
struct ZMTPFault: Error, Equatable {
    let reason: String
    /// What is sent to the peer before the connection ends.
    let says: [UInt8]?
    /// What a client socket reports for it.
    let failure: ConnectionFailure

    init(_ reason: String, says: [UInt8]? = nil, failure: ConnectionFailure? = nil) {
        self.reason = reason
        self.says = says
        self.failure = failure ?? .broken(reason)
    }
}
