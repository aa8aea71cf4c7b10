extension Rule {
    static let safety: [Rule] = [
        sleeps, wallClockWaits, forcedTries, emptyCatches, repairs, systemWords, uncheckedPromises,
    ]

    static let sleeps = Rule(name: "nothing sleeps") { tree in
        tree.lines(
            in: "Sources", "Tests",
            matching: { line in
                guard line.contains("leep") else { return false }
                return line.contains("Thread.sleep") || line.contains("Task.sleep")
                    || ["sleep", "usleep", "nanosleep"].contains { isCalled($0, in: line) }
            },
            message: "it sleeps; wait for the event, with a deadline")
    }

    /// On Linux, a `DispatchSemaphore` waits until a time of the wall clock, which may be set back.
    static let wallClockWaits = Rule(name: "a wait takes elapsed time") { tree in
        tree.lines(
            in: "Sources",
            matching: { $0.contains("wait(timeout: .now()") || $0.contains("wait(wallTimeout:") },
            message: "it may wait for the wall clock; wait by a Latch"
        ).filter { !$0.path.hasPrefix("Sources/ConfluxThreads/") }
    }

    static let forcedTries = Rule(name: "no error traps") { tree in
        tree.lines(
            in: "Sources", "Tests", "Benchmarks", "Fuzzing", "examples",
            matching: { $0.contains("try!") },
            message: "'try!' makes an operating error a crash; throw it, or handle it")
    }

    static let emptyCatches = Rule(name: "no error is swallowed") { tree in
        tree.swift(in: "Sources", "Tests", "Benchmarks", "Fuzzing", "examples").flatMap {
            path, source in
            emptyCatchLines(in: source.code).map {
                Violation(
                    path: path, line: $0,
                    message: "an empty 'catch' swallows an error; handle it, or let it through")
            }
        }
    }

    /// The ways of the libraries that replace what is not UTF-8 by U+FFFD, or drop it. `String(validating:)` does
    /// neither.
    private static let repairing = [
        "decoding:", "cString:", "CommandLine.arguments", ".processInfo.environment",
        "ProcessInfo().environment", "contentsOfFile:", ".currentDirectoryPath", "readLine(",
        "String(data:", "String(bytes:", ".bytes.lines", "stringWithFileSystemRepresentation",
    ]

    static let repairs = Rule(name: "bytes become text in one place") { tree in
        tree.lines(
            in: "Sources",
            matching: { line in
                // A property of ours has the name of a label of theirs.
                repairing.contains { line.contains($0) } && !line.contains("var decoding:")
            },
            message: "it may replace bytes that are not UTF-8; take String(utf8:), or say with "
                + "String(shown:) that only people read it"
        ).filter { !$0.path.hasPrefix("Sources/ConfluxVocabulary/Text/") }
    }

    /// What gives the system's words for a failure, without what to do about it.
    private static let wordings = [
        "strerror", "perror", "localizedDescription", "POSIXError", "NSPOSIXErrorDomain",
    ]

    static let systemWords = Rule(name: "the system's errors get their words in one place") {
        tree in
        tree.lines(
            in: "Sources",
            matching: { line in
                line.words.contains { wordings.contains($0) }
            },
            message:
                "it has the system's words, and not what to do; take SystemFailure.reason(advice:)"
        ).filter { !$0.path.hasPrefix("Sources/ConfluxSystem/") }
    }

    static let uncheckedPromises = Rule(name: "an unchecked promise says why it holds") { tree in
        tree.swift(in: "Sources").flatMap { path, source in
            source.code.indices.filter { index in
                let line = source.code[index]
                return
                    (line.contains("@unchecked Sendable")
                    || line.contains("nonisolated(unsafe)"))
                    && !isExplained(index, in: source)
            }.map {
                Violation(
                    path: path, line: $0 + 1,
                    message: "say in a comment here, or right above (not below), which lock or "
                        + "thread makes this true, or why it is Sendable")
            }
        }
    }

    /// Whether a line of code calls a function of this name, as a method or as a function.
    private static func isCalled(_ name: String, in line: String) -> Bool {
        var rest = line[...]
        while let range = rest.firstRange(of: name) {
            let before = rest[..<range.lowerBound].last
            let after = rest[range.upperBound...].drop(while: \.isWhitespace).first
            rest = rest[range.upperBound...]
            let continues = before.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
            if !continues, after == "(" { return true }
        }
        return false
    }

    /// The lines of `catch` clauses without code in their braces.
    private static func emptyCatchLines(in code: [String]) -> [Int] {
        code.indices.filter { code[$0].words.contains("catch") }.filter { index in
            guard let start = code[index].ranges(of: "catch").last?.upperBound else { return false }
            // In this repository, the brace of a clause opens within a few lines.
            let rest = ([String(code[index][start...])] + code[(index + 1)...].prefix(20))
                .joined(separator: "\n")
            guard let brace = rest.firstIndex(of: "{") else { return false }
            let first = rest[rest.index(after: brace)...].drop(while: \.isWhitespace).first
            return first == "}"
        }.map { $0 + 1 }
    }

    /// Whether a comment names the reason for a promise: on the line, on the lines of its declaration, or
    /// right before them.
    private static func isExplained(_ index: Int, in source: SwiftSource) -> Bool {
        let reasons = [
            "lock", "mutex", "thread", "queue", "atomic", "immutable", "owned", "confined",
            "serial", "executor", "sendable",
        ]
        func hasReason(_ line: Int) -> Bool {
            let comment = source.comments[line].lowercased()
            return reasons.contains { comment.contains($0) }
        }
        if hasReason(index) { return true }
        var line = index - 1
        while line >= 0 {
            let code = source.code[line]
            let isComment = code.isBlank && !source.comments[line].isBlank
            let isDeclaration =
                !code.isBlank && !code.contains("{") && !code.contains("}")
                && line > index - 4 && source.comments[line].isBlank
            guard isComment || isDeclaration else { return false }
            if hasReason(line) { return true }
            line -= 1
        }
        return false
    }
}
