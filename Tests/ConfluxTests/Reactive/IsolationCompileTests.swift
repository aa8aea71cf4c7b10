#if os(Linux)
    import Foundation
    import Testing

    /// What would be a data race does not compile in the language mode of Swift 6.
    ///
    /// Each program is compiled against the module that was built for the tests. Lines that end with `// no` must have
    /// an error, and no other line may have one.
    @Suite(.timeLimit(.minutes(10)))
    struct IsolationCompileTests {
        /// What the compiler says of a program, and what it was expected to say.
        private struct Verdict {
            var refused: Set<Int> = []
            var expected: Set<Int> = []
            var text = ""
        }

        private func compile(_ program: String, mode: String = "6") throws -> Verdict {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-compile-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let file = folder.appendingPathComponent("program.swift")
            try program.write(to: file, atomically: true, encoding: .utf8)
            let built = try #require(Bundle.main.executableURL).deletingLastPathComponent()
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [
                "swiftc", "-emit-sil", "-o", "/dev/null", "-parse-as-library",
                "-swift-version", mode, "-module-name", "Program", "-diagnostic-style", "llvm",
                "-I", built.appendingPathComponent("Modules").path, file.path,
            ]
            let output = Pipe()
            process.standardError = output
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            let text = String(
                decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            var verdict = Verdict(text: text)
            for line in text.split(separator: "\n") where line.contains(": error: ") {
                let place = line.split(separator: ":")
                #expect(place[0].hasSuffix("program.swift"), "\(line)")
                if let number = Int(place[1]) { verdict.refused.insert(number) }
            }
            for (index, line) in program.components(separatedBy: "\n").enumerated()
            where line.hasSuffix("// no") { verdict.expected.insert(index + 1) }
            return verdict
        }

        private static let states = """
            import Conflux
            import Dispatch

            struct Stock: Model, Equatable {
                static let name = "stock"
                var left = 0
                var right = 0
                var kind = ""
                enum Action: Codable, Sendable { case add(Int) }
                mutating func apply(_ action: Action, _ context: ActionContext) {}
            }

            """

        @Test func `an observer can't change what other code may use at the same time`() throws {
            let verdict = try compile(
                Self.states + """
                    final class Plain {
                        var number = 0
                        func watch(_ stock: ModelStore<Stock>, _ signal: Signal<Int>) {
                            stock.observe(\\.left) { self.number = $0.left }  // no
                            stock.observe { [weak self] stock, _ in self?.number = stock.left }  // no
                            stock.readOnly.observe(\\.left) { self.number = $0.left }  // no
                            stock.changed(\\.left).observe { self.number = $0 }  // no
                            stock.activities(of: Int.self).observe { self.number = $0 }  // no
                            signal.observe(on: .mainThread).observe { self.number = $0 }  // no
                            signal.observe(duringScopeOf: self) { self.number = $0 }  // no
                            _ = signal.map { self.number + $0 }  // no
                            signal.bind(to: self, \\.number)  // no
                            signal.bind(to: self, \\.number, on: .immediate)  // no
                            signal.bind(to: self, on: .immediate) { $0.number = $1 }  // no
                            signal.bind(to: self) { $0.number = $1 }  // no
                            _ = Binder<Int>(target: self) { $0.number = $1 }  // no
                            _ = AnyDisposable { self.number = 0 }  // no
                            Executor.queue(.global()).execute { self.number = 0 }  // no
                            _ = Executor { body in self.number = 0; body() }  // no
                            _ = Signal<Int> { send in self.number = 0; return AnyDisposable() }  // no
                        }
                    }

                    func watch(_ signal: Signal<Int>) {
                        var numbers: [Int] = []
                        signal.observe { numbers.append($0) }  // no
                        _ = numbers
                    }

                    actor Counter {
                        var number = 0
                        func watch(_ signal: Signal<Int>) {
                            var seen = 0
                            signal.observe { seen = $0 }  // no
                            signal.observe { self.number = $0 }
                        }
                    }

                    """)
            #expect(verdict.refused == verdict.expected, "\(verdict.text)")
        }

        @Test func `middleware, completions and events can't use the state of an actor`() throws {
            let verdict = try compile(
                Self.states + """
                    struct Login: Event {}

                    @MainActor
                    final class Screen {
                        var number = 0
                        func watch(_ stock: ModelStore<Stock>, _ scope: Scope) {
                            scope.dispatch(.add(1), to: stock) { _ in self.number = 1 }  // no
                            scope.use(ActionLogger { _ in self.number = 1 })  // no
                            let interceptor = Interceptor()
                            interceptor.register(Int.self) { _ in
                                self.number = 1  // no
                                return .pass
                            }
                            _ = EventHandlers<Stock.Action>().on(Login.self) { _ in .add(self.number) }  // no
                            _ = stock.changed(\\.left, isSame: { $0 == $1 + self.number })  // no
                        }
                    }

                    """)
            #expect(verdict.refused == verdict.expected, "\(verdict.text)")
        }

        @Test func `a property of an actor can't be bound from elsewhere`() throws {
            let verdict = try compile(
                """
                import Conflux

                @MainActor
                final class Label {
                    var number = 0
                }

                func bind(
                    _ signal: Signal<Int>, _ label: Label, _ path: ReferenceWritableKeyPath<Label, Int>
                ) {
                    signal.bind(to: label, path, on: .immediate)  // no
                }

                """)
            #expect(verdict.refused == verdict.expected, "\(verdict.text)")
        }

        @Test func `code of an actor may use its state in every observer`() throws {
            let program =
                Self.states + """
                    @MainActor
                    final class Screen {
                        var number = 0
                        func show(_ number: Int) { self.number = number }
                        func watch(_ stock: ModelStore<Stock>, _ signal: Signal<Int>) {
                            var seen = 0
                            stock.observe(\\.left, duringScopeOf: self) { [weak self] in self?.number = $0.left }
                            stock.observe { stock, _ in self.number = stock.left }
                        stock.observe { self.number = $0.left }
                        stock.observe(\\.left, \\.right) { self.number = $0.left }
                        stock.observe(\\.left, \\.right) { stock, _ in self.number = stock.left }
                        stock.readOnly.observe(\\.left, \\.right, duringScopeOf: self) { self.number = $0.left }
                        stock.readOnly.observe { stock, _ in self.number = stock.left }
                        stock.observe(\\.left, \\.right, \\.kind) { @MainActor in self.number = $0.left }
                            stock.changed(\\.left).observe { self.number = $0 }
                            stock.changed(\\.left).observe { seen = $0 }
                            signal.observe(show)
                            signal.observe(on: .queue(.global())).observe { self.number = $0 }
                            signal.map { self.number + $0 }.bind(to: self, \\.number)
                            signal.bind(to: Binder(target: self) { $0.number = $1 })
                            _ = AnyDisposable { self.number = seen }
                        }
                    }

                    """
            #expect(try compile(program).text == "")
        }

        @Test func `a program for VueFlux compiles in the language mode of Swift 5`() throws {
            let program = """
                import Conflux

                final class Presenter {
                    var numbers = [Int]()
                    func show(_ number: Int) { numbers.append(number) }
                    func watch(_ signal: Signal<Int>, _ label: Presenter) {
                        signal.observe { self.numbers.append($0) }
                        signal.observe(show)
                        signal.observe(duringScopeOf: self) { [weak self] in self?.numbers.append($0) }
                        signal.map { [$0] }.bind(to: label, \\.numbers)
                        signal.bind(to: label) { $0.numbers.append($1) }
                        signal.bind(to: Binder(target: label) { $0.numbers.append($1) })
                        let context: Executor.Context = { body in body() }
                        Executor(context).execute { self.numbers = [] }
                        _ = AnyDisposable { self.numbers = [] }
                    }
                }

                """
            #expect(try compile(program, mode: "5").text == "")
        }
    }
#endif
