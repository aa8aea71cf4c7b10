import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

@Suite struct `Lines of input` {
    private func all(_ text: String, lineBytesMax: Int = 100) throws -> [LineReader.Line] {
        let file = try TemporaryFile(text)
        let reader = try LineReader(path: file.path, lineBytesMax: lineBytesMax)
        var lines: [LineReader.Line] = []
        while let (first, more) = try reader.next() {
            #expect(first == lines.count + 1)
            lines += more
        }
        return lines
    }

    @Test func `empty lines count, and the last one needs no end`() throws {
        let texts = ["a", "", "b", "c"].map { LineReader.Line.text(Array($0.utf8)) }
        #expect(try all("a\n\nb\nc") == texts)
        #expect(try all("a\n\nb\nc\n") == texts)
        #expect(try all("") == [])
    }

    @Test func `a line beyond the bound is reported, and the others are not affected`() throws {
        let long = String(repeating: "x", count: 200_000)
        let expected: [LineReader.Line] = [
            .text(Array("a".utf8)), .tooLong, .text(Array("b".utf8)), .tooLong,
        ]
        #expect(try all("a\n\(long)\nb\n\(long)") == expected)
        #expect(
            try all("12345\n123456", lineBytesMax: 5) == [.text(Array("12345".utf8)), .tooLong])
    }

    @Test func `a byte order mark and carriage returns are no part of a line`() throws {
        let texts = ["a", "", "b"].map { LineReader.Line.text(Array($0.utf8)) }
        #expect(try all("\u{FEFF}a\r\n\r\nb\r\n") == texts)
        #expect(try all("\u{FEFF}a\n\nb\r") == texts)
        // A mark elsewhere is text.
        #expect(try all("a\n\u{FEFF}b") == [texts[0], .text(Array("\u{FEFF}b".utf8))])
    }

    @Test func `a line that spans reads is one line`() throws {
        let long = String(repeating: "y", count: 150_000)
        #expect(
            try all("\(long)\nz", lineBytesMax: 150_000)
                == [.text(Array(long.utf8)), .text(Array("z".utf8))])
    }

    @Test func `a file that can't be read is an error that names it`() throws {
        let missing = #expect(throws: CommandFailure.self) {
            try LineReader(path: "/no/such/file", lineBytesMax: 10)
        }
        #expect(missing?.exitCode == .noInput)
        #expect(missing?.message.contains("/no/such/file") == true)
        let folder = #expect(throws: CommandFailure.self) {
            try LineReader(path: NSTemporaryDirectory(), lineBytesMax: 10)
        }
        #expect(folder?.message.contains("is a folder") == true)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a reader that waits for input is stopped by another thread`() async throws {
        // A named pipe with a writer that writes nothing: a read would block forever.
        let path = NSTemporaryDirectory() + "conflux-cli-pipe-\(UUID().uuidString)"
        try #require(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let writer = open(path, O_RDWR)
        defer { close(writer) }
        let reader = try LineReader(path: path, lineBytesMax: 10)
        let reading = Task.detached { try reader.next() == nil }
        reader.stop()
        #expect(try await reading.value)
        #expect(reader.isStopped)
    }
}
