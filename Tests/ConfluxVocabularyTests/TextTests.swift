@testable import ConfluxVocabulary
import Foundation
import Testing

/// Bytes become text without a change, or not at all.
struct TextTests {
    @Test(
        arguments: [
            ([0x63, 0x61, 0x66, 0xE9], 3), ([0x80], 0), ([0x61, 0xC3], 1), ([0xC0, 0xAF], 0),
            ([0xE0, 0x80, 0x80], 0), ([0x61, 0xED, 0xA0, 0x80], 1), ([0xF4, 0x90, 0x80, 0x80], 0),
            ([0xF8, 0x88, 0x80, 0x80, 0x80], 0), ([0xE2, 0x82], 0), ([0xFF, 0xFE, 0x61, 0x00], 0),
        ] as [([UInt8], Int)])
    func `the first byte that is not UTF-8 is named`(bytes: [UInt8], offset: Int) {
        let expected = InvalidUTF8(offset: offset, byte: bytes[offset])
        #expect(throws: expected) { try String(utf8: bytes) }
        let words = bytes.map { CChar(bitPattern: $0) } + [0]
        if !bytes.contains(0) {
            #expect(throws: expected) { try String(utf8CString: words) }
        }
        #expect("\(expected)".contains("offset \(offset) is not UTF-8"))
        #expect(expected.hexadecimal == String(format: "0x%02X", bytes[offset]))
    }

    @Test func `text keeps its bytes, whatever they are`() throws {
        var random = SplitMix64(seed: 7)
        var accepted = 0
        for _ in 0..<200_000 {
            let count = Int.random(in: 0...4, using: &random)
            let bytes = (0..<count).map { _ in
                Bool.random(using: &random)
                    ? UInt8.random(in: 0x7F...0xFF, using: &random)
                    : [0x61, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F][
                        Int.random(in: 0..<8, using: &random)]
            }
            let isText = String(validating: bytes, as: UTF8.self) != nil
            do throws(InvalidUTF8) {
                #expect(Array(try String(utf8: bytes).utf8) == bytes)
                #expect(isText)
                accepted += 1
            } catch {
                // What is before the place is text by itself.
                #expect(!isText && bytes[error.offset] == error.byte)
                #expect(String(validating: bytes[..<error.offset], as: UTF8.self) != nil)
            }
        }
        #expect(accepted > 1_000)
    }

    @Test(
        arguments: [
            ("", []), ("\n", [""]), ("a", ["a"]), ("a\n", ["a"]), ("a\n\n", ["a", ""]),
            ("a\r\nb\r\n", ["a", "b"]), ("a\r\nb", ["a", "b"]), ("\r\n", [""]),
            ("\u{FEFF}a\nb", ["a", "b"]), ("\u{FEFF}\r\na", ["", "a"]), ("\u{FEFF}", []),
            // Only a line feed ends a line, and only the first mark is no text.
            ("a\rb\n", ["a\rb"]), ("a\u{2028}b\u{85}c\u{0B}d", ["a\u{2028}b\u{85}c\u{0B}d"]),
            ("a\n\u{FEFF}b", ["a", "\u{FEFF}b"]), ("a\r\r\n", ["a\r"]),
        ])
    func `lines end alike in every file`(text: String, lines: [String]) throws {
        #expect(try TextLines.read(Array(text.utf8)) == lines)
    }

    @Test func `a line that is not UTF-8 is named`() {
        let bytes = Array("\u{FEFF}a\r\nb".utf8) + [0xE9] + Array("\nc\n".utf8)
        let fault = #expect(throws: TextLines.Fault.self) { try TextLines.read(bytes) }
        #expect(fault?.line == 2)
        #expect(fault?.description == "line 2: byte 0xE9 at offset 1 is not UTF-8")
    }

    /// Calls the function with a C array of these texts.
    private func withWords<Result>(
        _ words: [[UInt8]], _ body: (ProcessWords.Pointers) throws -> Result
    ) rethrows -> Result {
        let copies: [UnsafeMutablePointer<CChar>?] = words.map { word in
            strdup(word.map { CChar(bitPattern: $0) } + [0])
        }
        defer { for copy in copies { free(copy) } }
        return try (copies + [nil]).withUnsafeBufferPointer { try body($0.baseAddress!) }
    }

    @Test func `an argument that is not UTF-8 is named, and the others are kept`() {
        let arguments = withWords(
            [Array("conflux".utf8), Array("--json".utf8), [0x61, 0xE9], []],
            ProcessWords.arguments)
        #expect(arguments.count == 3)
        #expect(arguments.first == .success("--json"))
        #expect(arguments.last == .success(""))
        guard case .failure(let fault)? = arguments.dropFirst().first else {
            Issue.record("the argument was accepted")
            return
        }
        #expect(fault.description == "argument 2 is not UTF-8: byte 0xE9 at offset 1")
        #expect(withWords([], ProcessWords.arguments).isEmpty)
    }

    @Test func `only the variables that are read must be UTF-8`() throws {
        let entries: [[UInt8]] = [
            Array("A_X=1=2".utf8), Array("A_X=3".utf8), Array("B=".utf8) + [0xFF],
            [0xFF] + Array("=1".utf8), Array("noise".utf8), Array("A_E=".utf8),
        ]
        let variables = try withWords(entries) {
            try ProcessWords.variables($0) { $0.hasPrefix("A_") }
        }
        #expect(variables == ["A_X": "1=2", "A_E": ""])
        let fault = #expect(throws: ProcessWords.Fault.self) {
            try withWords(entries) { try ProcessWords.variables($0) { $0 == "B" } }
        }
        #expect(fault?.description == "the variable B is not UTF-8: byte 0xFF at offset 0")
    }
}
