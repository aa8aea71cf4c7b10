import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxProtocol

/// Compares the numbers in `docs/protocol.md` with those in the code.
struct ProtocolDocumentTests {
    private static func rows() throws -> [String] {
        let url = GoldenFile.url.deletingLastPathComponent().appending(path: "protocol.md")
        return try String(contentsOf: url, encoding: .utf8)
            .split(separator: "\n").map(String.init).filter { $0.hasPrefix("| ") }
    }

    /// The names of the rules of the grammar. A rule begins at the margin of its block.
    private static func rules() throws -> [String] {
        let url = GoldenFile.url.deletingLastPathComponent().appending(path: "protocol.md")
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
            .filter { $0.hasPrefix("    ") && $0.dropFirst(4).first?.isLetter == true }
            .compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    @Test func `every kind is in a table with its number, and marked if it is reserved`() throws {
        let rows = try Self.rows()
        let spoken = Set(
            GoldenSample.all.compactMap { sample in
                try? Frame.header(of: sample.frame[...]).kind
            })
        for kind in MessageKind.allCases {
            let digits = String(kind.rawValue, radix: 16, uppercase: true)
            let number = "0x" + (digits.count == 1 ? "0" : "") + digits
            let row = try #require(rows.first { $0.hasPrefix("| \(number) | `\(kind)` |") })
            #expect(row.contains("| reserved |") == !spoken.contains(kind), "\(row)")
        }
    }

    /// The client in `examples/python` tests that every named rule is defined, and that the grammar matches the
    /// golden frames.
    @Test func `every supported kind is a rule of the grammar, and no other kind is`() throws {
        let rules = try Self.rules()
        let spoken = Set(
            GoldenSample.all.compactMap { try? Frame.header(of: $0.frame[...]).kind })
        for kind in MessageKind.allCases {
            #expect(rules.filter { $0 == "\(kind)" }.count == (spoken.contains(kind) ? 1 : 0))
        }
    }

    @Test func `every event of the log is a rule of the grammar`() throws {
        let rules = try Self.rules()
        let rows = try Self.rows()
        for kind in LogEventKind.allCases {
            let row = try #require(rows.first { $0.hasPrefix("| \(kind.rawValue) | `\(kind)` |") })
            let count = row.contains("| reserved |") ? 0 : 1
            #expect(rules.filter { $0 == "\(kind)" }.count == count, "\(row)")
        }
    }

    @Test func `every code is in a table with its number`() throws {
        let rows = try Self.rows()
        func expectRows<Code: CaseIterable & RawRepresentable>(_ type: Code.Type) {
            for code in Code.allCases {
                #expect(
                    rows.contains { $0.hasPrefix("| \(code.rawValue) | `\(code)` |") }, "\(code)")
            }
        }
        expectRows(ByeCode.self)
        expectRows(RejectionCode.self)
        expectRows(QuestionFailure.self)
        expectRows(LogEventKind.self)
    }

    @Test func `every limit is in the table of limits`() throws {
        let rows = try Self.rows()
        let limits = WireLimits.standard
        let stated: [(String, Int)] = [
            ("octets of a frame", limits.frameBytesMax),
            ("octets of a batch", limits.batchBytesMax),
            ("octets of a payload", limits.payloadBytesMax),
            ("targets of a batch", limits.rowsPerBatchMax),
            ("entries of a batch", limits.entriesPerBatchMax),
            ("blocks of a commit", limits.blocksPerCommitMax),
            ("elements of any other list", limits.elementsPerListMax),
            ("octets of a text", WireLimits.textBytesMax),
        ]
        for (words, limit) in stated {
            let row = try #require(rows.first { $0.hasPrefix("| \(words)") })
            #expect(row.filter(\.isNumber) == String(limit), "\(row)")
        }
    }
}
