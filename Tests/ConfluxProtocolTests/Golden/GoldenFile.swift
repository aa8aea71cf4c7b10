import ConfluxVocabulary
import Foundation

@testable import ConfluxProtocol

/// A variable of the process's environment.
func environment(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

/// `docs/golden-frames.json`: written by `CONFLUX_WRITE_GOLDEN=1`, otherwise only read.
enum GoldenFile {
    static let url = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs/golden-frames.json")

    struct Entry: Decodable {
        let name: String
        let speaker: String
        let kind: String
        let frame: String
    }

    static func entries() throws -> [Entry] {
        try JSONDecoder().decode([Entry].self, from: Data(contentsOf: url))
    }

    static func text(of samples: [GoldenSample]) -> String {
        let entries = samples.map { sample in
            let header = try? Frame.header(of: sample.frame[...])
            return """
                  {
                    "name": \(quoted(sample.name)),
                    "speaker": \(quoted(sample.message.speaker.rawValue)),
                    "kind": \(quoted(header?.kind.map { "\($0)" } ?? "none")),
                    "epoch": \(sample.epoch),
                    "session": \(sample.session),
                    "value": \(rendered(sample.message.content)),
                    "frame": \(quoted(hexadecimal(sample.frame[...])))
                  }
                """
        }
        return "[\n" + entries.joined(separator: ",\n") + "\n]\n"
    }

    static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    static func bytes(_ hexadecimal: String) -> Bytes {
        let digits = Array(hexadecimal)
        return stride(from: 0, to: digits.count, by: 2)
            .map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }[...]
    }

    /// A value as JSON, with its fields in the order of the grammar: numbers as numbers, names and codes
    /// as strings, bytes as hexadecimal digits, durations in nanoseconds.
    private static func rendered(_ value: Any) -> String {
        // This comes first, since an optional also matches the type that it wraps.
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional {
            return mirror.children.first.map { rendered($0.value) } ?? "null"
        }
        switch value {
        case let batch as Batch: return rendered(batch)
        case let bytes as Bytes: return quoted(hexadecimal(bytes))
        case let text as String: return quoted(text)
        case let flag as Bool: return flag ? "true" : "false"
        case let duration as Duration:
            return "\(duration / .nanoseconds(1))".dropLast(2).description
        case is UInt64, is UInt32, is UInt8, is SequenceNumber, is Epoch, is Incarnation,
            is Timestamp:
            return "\(value)"
        case Question.Body.shapes: return rendered(Question.Body.status)
        // The rest is in an extension.
        case let versions as SupportedVersions: return "\(versions.newest)"
        case is Name, is StoreName, is Target, is Identifier, is Digest:
            return quoted("\(value)")
        default: break
        }
        switch mirror.displayStyle {
        case .collection:
            return "[" + mirror.children.map { rendered($0.value) }.joined(separator: ", ") + "]"
        case .enum:
            guard let alternative = mirror.children.first, let label = alternative.label else {
                return quoted("\(value)")
            }
            return "{\(quoted(label)): \(rendered(alternative.value))}"
        default:
            // No peer sends the owner of a hello. Shapes, the digests of migrated states and the health are in extensions.
            let isUpgraded = mirror.children.contains { $0.label == "base" }
            let said = mirror.children.filter {
                !(value is Hello && $0.label == "owner")
                    && !["shapes", "migrated", "health", isUpgraded ? "digest" : nil].contains(
                        $0.label)
                    && !(value is BatchTarget && $0.label == "unchangedSince"
                        && (value as? BatchTarget)?.unchangedSince == nil)
            }
            let fields = said.map { child in
                var label = child.label.map { $0.hasPrefix(".") ? String($0.dropFirst()) : $0 }
                if child.value is SupportedVersions { label = "schemaVersion" }
                return "\(quoted(label ?? "")): \(rendered(child.value))"
            }
            return "{" + fields.joined(separator: ", ") + "}"
        }
    }

    private static func rendered(_ batch: Batch) -> String {
        let entries = batch.parsedEntries.map { entry in
            "{\"target\": \(entry.target), \"payload\": \(quoted(hexadecimal(entry.payload)))}"
        }
        return "{\"firstCounter\": \(batch.firstCounter), \"settled\": \(batch.settled), "
            + "\"kind\": \(quoted("\(batch.kind)")), \"count\": \(batch.count), \"targets\": \(rendered(batch.targets)), "
            + "\"entries\": [" + entries.joined(separator: ", ") + "]}"
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

extension AnyMessage {
    /// The message, without its direction.
    var content: Any {
        switch self {
        case .node(let message): Mirror(reflecting: message).children.first!.value
        case .sequencer(let message): Mirror(reflecting: message).children.first!.value
        case .feed(let message): Mirror(reflecting: message).children.first!.value
        }
    }
}
