/// The name of a state, of an event or of a node: 1 to 64 characters of `a-z 0-9 . _ -`.
///
/// Source: the vocabulary in `docs/glossary.md`. The bound keeps a table of targets small. The
/// alphabet ensures that names are equal only if their bytes are.
public struct Name: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The most characters (and bytes) that a name has.
    public static let lengthMax = 64

    /// The checked text.
    public let text: String

    /// Checks a text.
    ///
    /// - Returns: nil if the text is not a name.
    public init?(_ text: some StringProtocol) {
        guard !text.isEmpty, text.utf8.count <= Self.lengthMax,
            text.utf8.allSatisfy({ Self.accepts($0) })
        else { return nil }
        self.text = String(text)
    }

    /// Checks a text that arrived as bytes.
    ///
    /// - Returns: nil if the bytes are not a name.
    public init?(utf8 bytes: Bytes) {
        guard !bytes.isEmpty, bytes.count <= Self.lengthMax else { return nil }
        let text: String? = bytes.withUnsafeBufferPointer { buffer in
            for byte in buffer where !Self.accepts(byte) { return nil }
            return String(checkedUTF8: buffer)
        }
        guard let text else { return nil }
        self.text = text
    }

    private init(checked text: String) {
        self.text = text
    }

    /// Whether a name may have this byte.
    private static func accepts(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The instance of a store name that names no instance.
    public static let shared = Name(checked: "shared")

    /// The event whose entries set and end timers.
    package static let timers = Name(checked: "conflux.timers")

    /// The event whose entries claim and release leases.
    package static let leases = Name(checked: "conflux.leases")

    /// Whether the left name's bytes sort first.
    public static func < (left: Name, right: Name) -> Bool { left.text < right.text }

    /// The text.
    public var description: String { text }
}

/// The name of one store: `state/instance`.
public struct StoreName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The state's name.
    public let state: Name
    /// Which store of that state.
    public let instance: Name

    /// Makes a store name from checked parts.
    public init(state: Name, instance: Name) {
        self.state = state
        self.instance = instance
    }

    /// Parses `state/instance`, or `state` for the instance `shared`.
    ///
    /// - Returns: nil if a part is not a name, or there are more than two parts.
    public init?(_ text: String) {
        guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            guard let state = Name(text) else { return nil }
            self.init(state: state, instance: .shared)
            return
        }
        guard let state = Name(text[..<slash]), let instance = Name(text[slash...].dropFirst())
        else { return nil }
        self.init(state: state, instance: instance)
    }

    /// Whether the left name sorts first, by state and then by instance.
    public static func < (left: StoreName, right: StoreName) -> Bool {
        (left.state, left.instance) < (right.state, right.instance)
    }

    /// `state/instance`.
    public var description: String { "\(state)/\(instance)" }
}
