import Conflux
import ConfluxTesting
import Dispatch
import Testing

/// What a test store says, word by word, and where.
@Suite(.ownScope, .timeLimit(.minutes(2)))
struct FailureMessageTests {
    @Test func `a change that is not said`() async {
        let stock = TestStore(Stock())
        let line = #line + 1
        let found = await failures { await stock.send(.add("pear", 3)) }
        #expect(
            found == [
                Failure(
                    message: """
                        `.add("pear", 3)` changed the value, and the test says nothing of it:

                              Stock(
                            -   counts: [:],
                            +   counts: [
                            +     "pear": 3,
                            +   ],
                                isOpen: true,
                              )

                        (- expected, + actual)

                        If that is right, say what changes in a trailing closure: `{ $0.… = … }`.
                        """, line: line)
            ])
        // It goes on from what is there.
        await stock.send(.add("pear", 1)) { $0.counts["pear"] = 4 }
        await stock.finish()
    }

    @Test func `another value than is said`() async {
        let stock = TestStore(Stock())
        let line = #line + 2
        let found = await failures {
            await stock.send(.add("pear", 3)) { $0.counts["pear"] = 2 }
        }
        #expect(
            found == [
                Failure(
                    message: """
                        The value after `.add("pear", 3)` is not what the test says:

                              Stock(
                                counts: [
                            -     "pear": 2,
                            +     "pear": 3,
                                ],
                                isOpen: true,
                              )

                        (- expected, + actual)
                        """, line: line)
            ])
        await stock.finish()
    }

    @Test func `a change that does not come`() async {
        let stock = TestStore(Stock())
        #expect(
            await failures { await stock.send(.add("pear", 0)) { $0.counts["pear"] = 0 } }
                == [])
        #expect(
            await failures { await stock.send(.add("pear", 0)) { $0.isOpen = true } }
                .map(\.message) == [
                    """
                    The value is the same after `.add("pear", 0)` as before, and so is what the test's closure \
                    makes of it. Leave the closure out if nothing is to change.
                    """
                ])
        struct Odd: Error {}
        #expect(
            await failures { await stock.send(.add("pear", 0)) { _ in throw Odd() } }
                .map(\.message) == ["The test's function threw: Odd()"])
        await stock.finish()
    }

    @Test func `a refusal that is not said, and one that does not come`() async {
        let stock = TestStore(Stock())
        let refused = await failures { await stock.send(.take("fig", 1)) }.map(\.message)
        #expect(refused.count == 1)
        #expect(
            refused.first?.hasPrefix("`.take(\"fig\", 1)` was not committed: refused: ") == true)
        #expect(
            refused.first?.hasSuffix("If that is right, say so: `send(_:failing: .refused)`.")
                == true)
        #expect(
            await failures { await stock.send(.close, failing: .refused) }.map(\.message) == [
                """
                `.close` was committed, and the test says that it fails: `refused`. Is there a check that \
                should refuse it?
                """
            ])
        let other = await failures { await stock.send(.take("fig", 1), failing: .intercepted) }
        #expect(
            other.first?.message.hasPrefix(
                "`.take(\"fig\", 1)` failed otherwise than the test says, which is `intercepted`: refused: "
            )
                == true)
        await stock.finish()
    }

    @Test func `what was not received, before the next step and at the end`() async {
        let stock = TestStore(Stock())
        stock.store.dispatch(.add("fig", 1))
        stock.store.emit(7)
        let before = await failures { await stock.send(.close) { $0.isOpen = false } }
        #expect(
            before.map(\.message) == [
                """
                The store did more than the test says before `.close` is sent:

                    committed .add("fig", 1)
                    emitted 7

                Say so in its turn: `receive(…)`, or `receive(activity: …)`. A test that is not about it sets \
                `exhaustivity` to `.off`.
                """
            ])
        stock.store.dispatch(.add("fig", 1))
        let line = #line + 1
        let end = await failures { await stock.finish() }
        #expect(end.map(\.line) == [line])
        #expect(end.first?.message.contains("before the test ends") == true)
    }

    @Test func `what was not received when the test store is released`() async {
        var line = 0
        let found = await failures {
            line = #line + 1
            let stock = TestStore(Stock())
            stock.store.dispatch(.close)
        }
        #expect(found.map(\.line) == [line])
        #expect(found.first?.message.contains("    committed .close") == true)
    }

    @Test func `received is another one, or nothing`() async {
        let stock = TestStore(Stock())
        stock.store.dispatch(.add("fig", 1))
        let other = await failures { await stock.receive(.add("fig", 2)) }
        #expect(
            other.map(\.message) == [
                """
                Received another action than the test says, which is `.add("fig", 2)`:

                    - .add("fig", 2)
                    + .add("fig", 1)

                (- expected, + actual)
                """
            ])
        stock.timeout = .milliseconds(10)
        stock.store.emit("ping")
        let nothing = await failures { await stock.receive(.close) }
        #expect(
            nothing.map(\.message) == [
                """
                Received nothing for 0.01 seconds: expected `.close`. What there is:

                    emitted "ping"
                """
            ])
        let activity = await failures { await stock.receive(activity: "pong") }
        #expect(
            activity.map(\.message) == [
                """
                Another activity was emitted than the test says:

                    - "pong"
                    + "ping"

                (- expected, + actual)
                """
            ])
        let silence = await failures { await stock.receive(activity: "pong") }
        #expect(
            silence.map(\.message)
                == ["The activity `\"pong\"` was not emitted within 0.01 seconds."])
        stock.timeout = .seconds(30)
        await stock.finish()
    }

    @Test func `received and refused`() async {
        let stock = TestStore(Stock())
        stock.store.dispatch(.take("fig", 1))
        let refused = await failures { await stock.receive(.take("fig", 1)) }
        #expect(
            refused.map(\.message) == [
                """
                `.take("fig", 1)` was refused: NotEnough(there: 0)

                If that is right, say so: `isRefused: true`.
                """
            ])
        stock.store.dispatch(.close)
        let committed = await failures { await stock.receive(.close, isRefused: true) }
        #expect(
            committed.map(\.message)
                == ["`.close` was committed, and the test says that it is refused."])
        await stock.finish()
    }

    @Test func `a flow that is paused`() async throws {
        let stock = TestStore(Stock())
        stock.timeout = .milliseconds(10)
        let lock = Scope.current.lock()
        let found = await failures { await stock.send(.close) }
        #expect(
            found.map(\.message) == [
                """
                `.close` was not committed within 0.01 seconds. Is the flow paused by a lock, does the store \
                wait for another one, or is its queue busy? If it only takes long, raise `timeout`.
                """
            ])
        lock.release()
        stock.timeout = .seconds(30)
        await stock.receive(.close) { $0.isOpen = false }
        await stock.finish()
    }

    @Test func `what still waits at the end, and what comes behind it`() async {
        let line = #line + 2
        let found = await failures {
            let stock = TestStore(Stock())
            stock.timeout = .milliseconds(10)
            let lock = Scope.current.lock()
            stock.store.dispatch(.close)
            await stock.finish()
            lock.release()
        }
        #expect(
            found.first?.message == """
                The store is not done within 0.01 seconds: what was dispatched waits for a lock, for another \
                store, or for a queue that is busy. End that before the test ends.
                """)
        #expect(found.count == 2 && found.last?.line == line)
        #expect(found.last?.message.contains("    committed .close") == true)
    }

    /// A store whose queue does nothing until it is resumed.
    private func heldStore() -> (ModelStore<Stock>, DispatchQueue) {
        let queue = DispatchQueue(label: "held")
        return (ModelStore(Stock(), executor: .queue(queue)), queue)
    }

    @Test func `a store whose queue is busy`() async {
        let (store, queue) = heldStore()
        queue.suspend()
        let stock = TestStore(store)
        stock.timeout = .milliseconds(10)
        let found = await failures { await stock.send(.close) }
        #expect(
            found.map(\.message) == [
                """
                The store did nothing for 0.01 seconds. Is its queue busy, or does a commit wait for something?
                """
            ])
        queue.resume()
        stock.timeout = .seconds(30)
        await stock.finish()
    }

    @Test func `a test store that is released while its store has more to do`() async {
        let (store, queue) = heldStore()
        var line = 0
        let found = await failures {
            line = #line + 1
            let stock = TestStore(store)
            await stock.finish()
            queue.suspend()
            store.dispatch(.close)
            store.dispatch(.close)
        }
        queue.resume()
        #expect(
            found == [
                Failure(
                    message: """
                        The store has more to do than the test waited for. Let `finish()` be the test's last \
                        step: it waits.
                        """, line: line)
            ])
    }

    @Test func `a value that was changed past the actions`() async throws {
        let stock = TestStore(Stock())
        let recorder = Recorder(stock.store)
        await stock.send(.close) { $0.isOpen = false }
        try recorder.back()
        let found = await failures { await stock.finish() }
        #expect(
            found.first?.message.hasPrefix("The value was changed past the store's actions:")
                == true)
        #expect(found.first?.message.hasSuffix("say so: `expect { $0.… = … }`.") == true)
    }

    @Test func `of what a test never says the newest is kept`() async {
        let stock = TestStore(Stock())
        let count = 70_000
        for number in 1...count { stock.store.emit(number) }
        let found = await failures { await stock.finish() }
        // The first of those that are kept, 20 of them, and how many more there are.
        #expect(found.first?.message.contains("    emitted \(count - 65_536 + 1)\n") == true)
        #expect(found.first?.message.contains("    … (\(65_536 - 20) more)") == true)
    }

    @Test func `a failure in a detached task is heard`() async {
        let stock = TestStore(Stock())
        let found = await failures {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await stock.send(.close) }
            }
        }
        #expect(found.count == 1)
        await stock.finish()
    }
}
