import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The keys that may connect, and the rights of each.
///
/// The text form has one key on each line: a name, the public key, and the rights, separated by spaces or
/// tabs.
///
/// ```
/// # name       public key                                rights
/// worker-1     rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7  all
/// orders-api   Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID  dispatch=orders/* observe=orders/* rate=500/s
/// ```
///
/// Empty lines and lines that begin with `#` are ignored. For the rights, see `RightsText`.
public struct AuthorizedKeys: Sendable, Equatable {
    private var principals: [CurvePublicKey: Principal] = [:]

    /// How many actions a second each key may dispatch that has a limit.
    var rates: [Name: UInt32] {
        principals.values.reduce(into: [:]) { rates, principal in
            if let name = principal.name { rates[name] = principal.rights.actionsPerSecondMax }
        }
    }

    /// The most keys in one text. *At the bound* the text is refused.
    public static let countMax = 10_000
    /// The most bytes of the text. *At the bound* it is refused.
    public static let textBytesMax = 4 << 20

    /// Why a text is invalid.
    public struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        /// The line's number, from 1.
        public let line: Int
        /// What is wrong with the line, and what to do.
        public let message: String

        /// The line and the message.
        public var description: String { "line \(line): \(message)" }
    }

    /// Makes an empty list: nobody may connect.
    public init() {}

    /// Reads the authorised keys from a text.
    ///
    /// - Parameter text: The text.
    /// - Throws: ``Fault`` for the first invalid line.
    public init(_ text: String) throws(Fault) {
        try self.init(utf8: Array(text.utf8))
    }

    /// Reads the authorised keys from the bytes of a file.
    ///
    /// - Parameter bytes: The text in UTF-8.
    /// - Throws: ``Fault`` for the first invalid line.
    public init(utf8 bytes: [UInt8]) throws(Fault) {
        guard bytes.count <= Self.textBytesMax else {
            throw Fault(line: 1, message: "the file has more than \(Self.textBytesMax) bytes")
        }
        let contents: [String]
        do throws(TextLines.Fault) {
            contents = try TextLines.read(bytes)
        } catch {
            throw Fault(line: error.line, message: "\(error.fault)")
        }
        var lines: [Name: Int] = [:]
        for (index, content) in contents.enumerated() {
            let line = index + 1
            let words = content.split(whereSeparator: { " \t".contains($0) })
            // By bytes: a mark that follows belongs to the same character.
            guard let first = words.first?.utf8.first, first != UInt8(ascii: "#") else { continue }
            do throws(InvalidText) {
                let (name, key) = try Self.read(words)
                let rights = try RightsText.read(words[2...])
                if let other = lines[name] {
                    throw InvalidText("line \(other) has the name \(name) already")
                }
                if let other = principals[key]?.name {
                    throw InvalidText("\(other) has this key already")
                }
                guard principals.count < Self.countMax else {
                    throw InvalidText("there are more than \(Self.countMax) keys")
                }
                lines[name] = line
                principals[key] = Principal(name: name, rights: rights)
            } catch {
                throw Fault(line: line, message: error.message)
            }
        }
    }

    /// The number of keys.
    public var count: Int { principals.count }

    /// The principal that owns a key; nil if the key may not connect.
    public subscript(key: CurvePublicKey) -> Principal? { principals[key] }

    private static func read(
        _ words: [Substring]
    ) throws(InvalidText) -> (Name, CurvePublicKey) {
        guard let name = Name(String(words[0])) else {
            throw InvalidText(
                "a name has 1 to 64 characters of a-z 0-9 . _ -, not \(InvalidText.quoted(words[0]))"
            )
        }
        guard words.count > 1, let key = CurvePublicKey(String(words[1])) else {
            throw InvalidText(
                """
                the name must be followed by a public key of 40 characters, as conflux keygen prints \
                it
                """)
        }
        return (name, key)
    }
}
