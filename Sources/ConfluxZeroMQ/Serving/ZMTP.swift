import ConfluxVocabulary

/// The part of ZMTP 3.0 that a serving socket speaks: the greeting and the commands of the
/// mechanism NULL. See [the RFC](https://rfc.zeromq.org/spec/23/).
enum ZMTP {
    /// Which socket a serving socket says that it is.
    enum SocketType: String {
        case router = "ROUTER"
        case publisher = "XPUB"

        /// The types of peers that may connect.
        var peers: [String] {
            switch self {
            case .router: ["DEALER", "REQ", "ROUTER"]
            case .publisher: ["SUB", "XSUB"]
            }
        }
    }

    static let greetingBytes = 64
    /// The longest header of a frame: its flags, and its length in eight bytes.
    static let headerBytesMax = 9
    /// The most bytes of a command. What peers say of themselves is far shorter.
    static let commandBytesMax = 1_024

    static let moreFlag: UInt8 = 1
    static let longFlag: UInt8 = 2
    static let commandFlag: UInt8 = 4

    /// Version 3.0, so that peers subscribe by messages; not as a server; no security.
    static let greeting: [UInt8] =
        [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 0]
        + padded(Array("NULL".utf8), to: 20) + [UInt8](repeating: 0, count: 32)

    /// The command that ends the handshake: what this socket is.
    static func ready(_ type: SocketType) -> [UInt8] {
        let value = Array(type.rawValue.utf8)
        return command(
            "READY",
            string("Socket-Type") + [0, 0, 0, UInt8(value.count)] + value)
    }

    /// The answer to a ping.
    static func pong(_ context: Bytes) -> [UInt8] { command("PONG", Array(context)) }

    /// What stands before a message of one frame.
    static func header(bodyBytes: Int) -> [UInt8] {
        guard bodyBytes > 255 else { return [0, UInt8(bodyBytes)] }
        return [longFlag] + (0..<8).map { UInt8(truncatingIfNeeded: bodyBytes >> (56 - 8 * $0)) }
    }

    private static func command(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = string(name) + data
        return [commandFlag, UInt8(body.count)] + body
    }

    private static func string(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }

    private static func padded(_ bytes: [UInt8], to count: Int) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }
}

/// A peer broke ZMTP, or a bound. Its connection ends.
struct ZMTPFault: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
