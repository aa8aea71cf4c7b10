import Foundation
import Testing

struct MessageTests {
    @Test func `the page of messages lists the messages of the sources`() throws {
        let tree = try Tree.ofThisRepository()
        let text = MessagePage.text(of: tree)
        if ProcessInfo.processInfo.environment["CONFLUX_REWRITE"] == "1" {
            let file = try Tree.top().appending(path: MessagePage.path)
            return try text.write(to: file, atomically: true, encoding: .utf8)
        }
        let former = tree.texts[MessagePage.path, default: ""]
        for change in text.split(separator: "\n").difference(from: former.split(separator: "\n")) {
            switch change {
            case .insert(_, let line, _): Issue.record("missing in \(MessagePage.path): \(line)")
            case .remove(_, let line, _): Issue.record("not printed any more: \(line)")
            }
        }
    }

    @Test func `an error says what happened and what to do`() throws {
        let types: Set = [
            "CommandFailure", "DispatchError", "NodeError", "StoreError", "LogError", "ZeroMQError",
            "KeyFileError", "HTTPError", "SequencerError", "EtcdFileError",
        ]
        for message in MessagePage.messages(of: try Tree.ofThisRepository())
        where types.contains(String(message.maker.prefix { $0.isLetter })) {
            // What happened comes first, and then what to do. Parts of messages have no full stop, and a message
            // that ends with another message leaves the advice to that one.
            let text = message.text
            guard text.contains(". ") || text.hasSuffix("."), text.first != "." else { continue }
            let isLeftToAnother = ["essage}", "advice}", "{reason}."].contains(
                where: text.hasSuffix)
            #expect(
                message.clauses.count > 1 || isLeftToAnother,
                "\(message.path): \"\(text)\" does not say what to do")
        }
    }

    private func messages(_ text: String) -> [String] {
        Message.all(in: SwiftSource(text), at: "Sources/Conflux/A.swift").map {
            "\($0.maker): \($0.text)"
        }
    }

    @Test func `a text is listed with its error and code`() {
        #expect(
            messages(#"throw NodeError(code: .closed, message: "The node is \(word) now. Go.")"#)
                == ["NodeError .closed: The node is {word} now. Go."])
        #expect(
            messages(#"CommandFailure(.usage, code: "x", "One of two " + "\(f("a b", 1)) words.")"#)
                == ["CommandFailure .usage: One of two {…} words."])
        #expect(
            messages(
                "func tell() {\n    note(\"\"\"\n        the log \\\n        is full\n        \"\"\")\n}"
            )
                == ["tell → note: the log is full"])
        #expect(
            messages("var reason: String {\n    switch self { case .full: \"no room is left\" }\n}")
                == ["reason: no room is left"])
    }

    @Test func `texts that are not messages are not listed`() {
        #expect(messages(#"Option("--name", help: "The name of a node.")"#).isEmpty)
        #expect(messages(#"f("two words") // "a comment of words""#).isEmpty)
        #expect(
            messages(#"Command("a", examples: [.init("Keep today's log", "conflux b")])"#).isEmpty)
    }
}
