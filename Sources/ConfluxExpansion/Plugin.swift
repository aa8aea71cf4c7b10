import Foundation

/// The program that the compiler runs to expand Conflux's macros.
///
/// *Problem*: a macro is usually written with the package SwiftSyntax, and Conflux depends on no package. *Design*: the
/// compiler asks a macro's program in messages of JSON, each behind its length in eight bytes, the lowest first. A message
/// has the source of the declaration. The answer has the source of its expansion. So all that is needed is to read these
/// messages, and as much of Swift as a declaration of data needs (``Declaration``). Compilers understand programs that
/// were built with any former SwiftSyntax, so the messages that are used here stay.
package enum Plugin {
    /// Answers the compiler until it ends.
    ///
    /// - Throws: A message that can't be read or written.
    package static func main() throws {
        while let message = try read() { try write(reply(to: message)) }
    }

    /// The answer to a message of the compiler.
    static func reply(to message: [String: Any]) -> [String: Any] {
        if message["getCapability"] != nil {
            let capability: [String: Any] = ["protocolVersion": 7, "features": [String]()]
            return ["getCapabilityResult": ["capability": capability]]
        }
        guard let request = message["expandAttachedMacro"] as? [String: Any] else {
            return result(failing: "This macro belongs before a struct or an enum.", [:])
        }
        let source = { (key: String) in (request[key] as? [String: Any])?["source"] as? String }
        do {
            guard let declared = source("declSyntax") else {
                throw ExpansionFailure("This macro belongs before a struct or an enum.")
            }
            let type = source("extendedTypeSyntax") ?? ""
            let coding = CompactCoding(of: try Declaration(declared), named: type)
            if request["macroRole"] as? String == "member" { return result(try coding.members()) }
            let conforms = source("conformanceListSyntax") == nil
            return result(try coding.extensions(conforms: conforms))
        } catch {
            return result(failing: "\(error)", request["attributeSyntax"] as? [String: Any] ?? [:])
        }
    }

    private static func result(_ source: String) -> [String: Any] {
        ["expandMacroResult": ["expandedSource": source, "diagnostics": [Any]()]]
    }

    /// An error at the macro's attribute.
    private static func result(
        failing message: String, _ attribute: [String: Any]
    ) -> [String: Any] {
        let location = attribute["location"] as? [String: Any] ?? [:]
        let blank = (attribute["source"] as? String ?? "").prefix { $0.isWhitespace }
        let position: [String: Any] = [
            "fileName": location["fileName"] as? String ?? "",
            "offset": (location["offset"] as? Int ?? 0) + blank.utf8.count,
        ]
        let diagnostic: [String: Any] = [
            "message": message, "severity": "error", "position": position,
            "highlights": [Any](), "notes": [Any](), "fixIts": [Any](),
        ]
        return ["expandMacroResult": ["expandedSource": "", "diagnostics": [diagnostic]]]
    }

    // MARK: Messages

    /// Reads a message; nil if the compiler has ended.
    private static func read() throws -> [String: Any]? {
        guard let header = try bytes(8) else { return nil }
        let count = header.reversed().reduce(0) { $0 << 8 | Int($1) }
        guard let body = try bytes(count), count > 0 else { return nil }
        return try JSONSerialization.jsonObject(with: body) as? [String: Any]
    }

    /// Reads so many bytes; nil if there are fewer.
    private static func bytes(_ count: Int) throws -> Data? {
        var data = Data()
        while data.count < count {
            guard let more = try FileHandle.standardInput.read(upToCount: count - data.count),
                !more.isEmpty
            else { return nil }
            data += more
        }
        return data
    }

    private static func write(_ reply: [String: Any]) throws {
        let body = try JSONSerialization.data(withJSONObject: reply)
        let header = (0..<8).map { UInt8(truncatingIfNeeded: body.count >> (8 * $0)) }
        try FileHandle.standardOutput.write(contentsOf: Data(header) + body)
    }
}

/// Why a macro can't be expanded: a message of the compiler.
struct ExpansionFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
