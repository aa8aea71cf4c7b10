/// Why bytes are not a frame, a commit or a batch of this version of the protocol.
///
/// Offsets count from the first byte of what was decoded: of the frame, or of the commit's body or
/// the batch if one of these was decoded by itself. `expected` names the field in words.
public enum WireError: Error, Sendable, Hashable {
    /// The bytes do not begin with the protocol's magic bytes.
    case notAFrame
    /// The bytes end before the field does.
    case truncated(at: Int, expected: String)
    /// A field has a value that the grammar does not allow.
    case malformed(at: Int, expected: String)
    /// A count or a length is above a limit.
    case limitExceeded(at: Int, expected: String, found: UInt64, limit: UInt64)
    /// The frame is of a version of the protocol that is not spoken here.
    case unsupportedVersion(UInt8)
    /// A message, an event or a block has a number that is not spoken here.
    case unsupportedKind(UInt8, at: Int, expected: String)
    /// A code is not known here.
    case unknownCode(UInt16, at: Int, expected: String)
    /// There is an extension that must be understood, and it is not known here.
    case unsupportedExtension(tag: UInt16, at: Int)

    /// What is wrong, where, and what to do, for people.
    public var message: String {
        switch self {
        case .notAFrame:
            "These bytes are not a Conflux frame: they do not begin with “CFLX”. Check that the "
                + "address is a sequencer's."
        case .truncated(let offset, let expected):
            "The bytes end at \(offset), within \(expected)."
        case .malformed(let offset, let expected):
            "The bytes at \(offset) are not \(expected)."
        case .limitExceeded(let offset, let expected, let found, let limit):
            "At \(offset), \(expected): \(found) is above the limit of \(limit)."
        case .unsupportedVersion(let version):
            "The peer speaks version \(version) of the protocol, this side version "
                + "\(Frame.version). Upgrade the older one."
        case .unsupportedKind(let kind, let offset, let expected):
            "At \(offset), \(expected): the kind \(kind) is not spoken here. Upgrade the older side."
        case .unknownCode(let code, let offset, let expected):
            "At \(offset), \(expected): the code \(code) is not known here. Upgrade the older side."
        case .unsupportedExtension(let tag, let offset):
            "The extension \(tag) at \(offset) must be understood and is not known here. Upgrade "
                + "the older side."
        }
    }

    /// The code of the `bye` that answers a peer which sent such bytes.
    public var byeCode: ByeCode {
        switch self {
        case .notAFrame, .truncated, .malformed, .limitExceeded: .malformed
        case .unsupportedVersion: .version
        case .unsupportedKind, .unknownCode, .unsupportedExtension: .unsupported
        }
    }
}

extension WireError: CustomStringConvertible {
    /// The same as ``message``.
    public var description: String { message }
}
