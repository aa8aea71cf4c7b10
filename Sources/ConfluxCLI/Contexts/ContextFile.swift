import ConfluxNode
import ConfluxSystem
import ConfluxVocabulary
import ConfluxWorker
import Foundation

/// A user's named sequencers, with the address and the keys for each.
struct Contexts: Codable, Sendable {
    /// The values that a context may have: their member names in the file, and the environment
    /// variables that they replace.
    static let members = [
        "connect": "CONFLUX_CONNECT", "curveSecret": "CONFLUX_CURVE_SECRET",
        "serverKey": "CONFLUX_SERVER_KEY",
    ]

    /// The values of each context, under the names of ``members``.
    var named: [String: [String: String]] = [:]
    /// The context that is used by default.
    var current: String?

    var names: [String] { named.keys.sorted() }

    private enum CodingKeys: String, CodingKey {
        case named = "contexts"
        case current
    }
}

/// The file with a user's contexts. Each command reads it anew. It is always replaced as a whole.
struct ContextFile: Sendable {
    private static let bytesMax = 1 << 20
    /// The file's path; nil if the environment names no home folder.
    let path: String?

    /// - Parameter variables: The environment. `XDG_CONFIG_HOME`, or else `HOME`, decides the path.
    init(_ variables: [String: String]) {
        func folder(_ name: String) -> String? {
            variables[name].flatMap { Folder.isAbsolute($0) ? $0 : nil }
        }
        let base = folder("XDG_CONFIG_HOME") ?? folder("HOME").map { "\($0)/.config" }
        path = base.map { "\($0)/conflux/contexts.json" }
    }

    /// Reads the file.
    ///
    /// - Returns: The contexts; none if there is no file.
    /// - Throws: ``CommandFailure`` if it can't be read. The file stays as it is.
    func read() throws(CommandFailure) -> Contexts {
        guard let path else { return Contexts() }
        let bytes: [UInt8]
        do throws(SystemFailure) {
            bytes = try InputFile(path).read(upTo: Self.bytesMax + 1)
        } catch {
            if error.number == ENOENT || error.number == ENOTDIR { return Contexts() }
            throw unreadable(error.reason(advice: "Let this user read it, or remove it."))
        }
        guard bytes.count <= Self.bytesMax else { throw flawed("it has more than 1 MiB") }
        do throws(CodingFailure) {
            let text = Array(TextLines.afterMark(bytes[...]))
            let contexts = try CanonicalCoder().decode(Contexts.self, from: text)
            let members = Set(contexts.named.values.flatMap(\.keys))
            // The file is replaced as a whole, so nothing in it may be passed over.
            guard try JSONValue(json: CanonicalCoder().encode(contexts)) == JSONValue(json: text),
                members.isSubset(of: Contexts.members.keys)
            else {
                throw CodingFailure(
                    .invalidText, "it has a member that this version does not know")
            }
            return contexts
        } catch {
            throw flawed("\(error)")
        }
    }

    /// The failure for a file with other contents.
    private func flawed(_ flaw: String) -> CommandFailure {
        unreadable("\(flaw). The file was not changed. Correct it, or remove it.")
    }

    private func unreadable(_ reason: String) -> CommandFailure {
        CommandFailure(
            .noInput, code: "contextsUnreadable",
            "The contexts in \(path ?? "") can't be read: \(reason)")
    }

    /// Replaces the file atomically.
    ///
    /// - Throws: ``CommandFailure`` if it can't be written. Then the former file stays.
    func write(_ contexts: Contexts) throws(CommandFailure) {
        guard let path else {
            throw CommandFailure(
                .cannotCreate, code: "contextsUnwritable",
                "The contexts can't be saved: neither XDG_CONFIG_HOME nor HOME is set to a folder. Set one."
            )
        }
        let named = contexts.named.mapValues { JSONObject($0.mapValues { .some($0) }) }
        let file = JSONObject([
            "contexts": JSONObject(named.mapValues { .some($0) }), "current": contexts.current,
        ])
        let text = JSONLayout.bytes(file.json.description.utf8, .plain, columns: 0)
        do throws(SystemFailure) {
            try Folder.make(Folder.parent(of: path))
            let file = try DraftFile(path)
            try file.write(text + [UInt8(ascii: "\n")])
            try file.complete()
        } catch {
            let reason = error.reason(
                advice: "Set XDG_CONFIG_HOME to a folder that this user may write.")
            throw CommandFailure(
                .cannotCreate, code: "contextsUnwritable",
                "The contexts can't be saved in \(path): \(reason)")
        }
    }

    /// The environment of a command: the user's own, and the context's values for variables that it does not have.
    ///
    /// - Parameters:
    ///   - name: The context; nil for the current one, if there is one.
    ///   - variables: The environment.
    /// - Returns: The environment with the context's values.
    /// - Throws: ``CommandFailure`` if there is no such context, or the file can't be read.
    func adding(
        _ name: String?, to variables: [String: String]
    ) throws(CommandFailure) -> [String: String] {
        let contexts = try read()
        guard let name = name ?? contexts.current else { return variables }
        let values = try contexts.fields(of: name).compactMap { key, value in
            Contexts.members[key].map { ($0, value) }
        }
        return Dictionary(uniqueKeysWithValues: values).merging(variables) { $1 }
    }
}

extension Contexts {
    /// The values of a context.
    ///
    /// - Throws: ``CommandFailure`` if there is no context of this name.
    func fields(of name: String) throws(CommandFailure) -> [String: String] {
        guard let fields = named[name] else {
            let known =
                names.isEmpty
                ? ", and no other yet" : "; there are: \(names.joined(separator: ", "))"
            throw CommandFailure(
                .usage, code: "unknownContext",
                """
                There is no context '\(name)'\(known). `conflux context set \(name) --connect ADDRESS` makes it.
                """)
        }
        return fields
    }
}
