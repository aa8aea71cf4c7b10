import Conflux
import ConfluxTesting
import Dispatch
import Testing

/// The exact messages of a test store, and their places.
@Suite(.ownScope, .timeLimit(.minutes(2)))
struct FailureMessageTests {
    @Test func `an unstated change fails the test`() async {
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
        // The test store continues from the actual state.
        await stock.send(.add("pear", 1)) { $0.counts["pear"] = 4 }
        await stock.finish()
    }

    @Test func `a value other than the stated one fails the test`() async {
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

                        If the value is right, fix the closure. Otherwise fix the state.
                        """, line: line)
            ])
        await stock.finish()
    }

    @Test func `a stated change that does not happen fails the test`() async {
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
                .map(\.message) == [
                    """
                    The test's function threw: Odd()

                    It only says what the value becomes: check and unwrap before the step, or behind it.
                    """
                ])
        await stock.finish()
    }

    @Test func `an unexpected refusal fails the test, and so does a missing one`() async {
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
                should refuse it? If not, leave out `failing:`.
                """
            ])
        let other = await failures { await stock.send(.take("fig", 1), failing: .intercepted) }
        #expect(
            other.first?.message.hasPrefix(
                "`.take(\"fig\", 1)` failed with another error than the test says, which is "
                    + "`intercepted`: refused: "
            )
                == true)
        #expect(
            other.first?.message.hasSuffix("\n\nIf that is right, say so: `failing: .refused`.")
                == true)
        struct Odd: Error {}
        #expect(
            await failures {
                await stock.send(.take("fig", 1), failing: .refused) { _ in throw Odd() }
            }.map(\.message) == [
                """
                The test's function threw: Odd()

                It only looks at the error that `.take("fig", 1)` failed with: let it record what is wrong with \
                that.
                """
            ])
        await stock.finish()
    }

    @Test func `actions that were not received fail the next step or the end of the test`() async {
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

    @Test func `actions that were not received fail the test when the test store is released`()
        async
    {
        var line = 0
        let found = await failures {
            line = #line + 1
            let stock = TestStore(Stock())
            stock.store.dispatch(.close)
        }
        #expect(found.map(\.line) == [line])
        #expect(found.first?.message.contains("    committed .close") == true)
    }

    @Test func `a test that receives another action than it states, or none, fails`() async {
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

                If that comes first, receive it first. A test that is not about it sets `exhaustivity` to `.off`.
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

                If it only takes long, raise `timeout`.
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

                If that comes first, receive it first. A test that is not about it sets `exhaustivity` to `.off`.
                """
            ])
        let silence = await failures { await stock.receive(activity: "pong") }
        #expect(
            silence.map(\.message) == [
                """
                The activity `"pong"` was not emitted within 0.01 seconds. If it only takes long, raise `timeout`.
                """
            ])
        stock.timeout = .seconds(30)
        await stock.finish()
    }

    @Test func `a received action must be refused exactly if the test states it`() async {
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
            committed.map(\.message) == [
                """
                `.close` was committed, and the test says that it is refused. Is there a check that should refuse \
                it? If not, leave out `isRefused: true`.
                """
            ])
        await stock.finish()
    }

    @Test func `a storage's commits are stated with and without a name`() async {
        let storage = TestStore(storage: 0)
        storage.store.commit("three") { $0.replace(3) }
        let other = await failures { await storage.receive(commit: "") }
        #expect(
            other.map(\.message) == [
                """
                Received another action than the test says, which is an unnamed commit:

                    three

                If that comes first, receive it first. A test that is not about it sets `exhaustivity` to `.off`.
                """
            ])
        storage.store.commit { $0.replace(4) }
        let unsaid = await failures { await storage.receive(commit: "") }
        #expect(
            unsaid.first?.message.hasPrefix(
                "An unnamed commit changed the value, and the test says nothing of it:") == true)
        storage.store.commit { $0.replace(5) }
        let wrong = await failures { await storage.receive(commit: "") { $0 = 6 } }
        #expect(
            wrong.first?.message.hasPrefix(
                "The value after an unnamed commit is not what the test says:") == true)
        storage.store.commit { $0.replace(6) }
        let left = await failures { await storage.finish() }
        #expect(left.first?.message.contains("    committed an unnamed commit\n") == true)
    }

    @Test func `a typed action is written as it is`() async {
        let wallet = TestStore(Wallet())
        let unsaid = await failures { await wallet.send(Earn(amount: 3)) }
        #expect(unsaid.first?.message.hasPrefix("`Earn(amount: 3)` changed the value") == true)
        let refused = await failures { await wallet.send(Lose()) }
        #expect(refused.first?.message.hasPrefix("`Lose()` was not committed: refused: ") == true)
        wallet.store.dispatch(Earn(amount: 3))
        let left = await failures { await wallet.finish() }
        #expect(left.first?.message.contains("    committed Earn(amount: 3)\n") == true)
    }

    @Test func `a value of an observed signal is received`() async {
        let store = Store<Counter>(state: Counter(), mutations: .init(), executor: .immediate)
        let counter = TestStore(store) { $0.count }
        await counter.hear(store.computed.counts)
        let found = await failures { await counter.send(.increment) { $0 = 1 } }
        #expect(found.first?.message.contains("    emitted 0\n") == true)
        #expect(await failures { await counter.receive(activity: 2) }.count == 1)
        await counter.finish()
    }

    @Test func `a paused flow fails the test`() async throws {
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

    @Test func `work that still waits at the end fails the test, and so do its effects`() async {
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

    /// A store whose queue is suspended.
    private func heldStore() -> (ModelStore<Stock>, DispatchQueue) {
        let queue = DispatchQueue(label: "held")
        return (ModelStore(Stock(), executor: .queue(queue)), queue)
    }

    @Test func `a store whose queue is busy fails the test`() async {
        let (store, queue) = heldStore()
        queue.suspend()
        let stock = TestStore(store)
        stock.timeout = .milliseconds(10)
        let found = await failures { await stock.send(.close) }
        #expect(
            found.map(\.message) == [
                """
                The store did nothing for 0.01 seconds. Is its queue busy, or does a commit wait for something? \
                If it only takes long, raise `timeout`.
                """
            ])
        queue.resume()
        stock.timeout = .seconds(30)
        await stock.finish()
    }

    @Test func `a test store that is released while its store has more to do fails the test`() async
    {
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

    @Test func `a value that was changed without an action fails the test`() async throws {
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

    @Test func `the newest of the actions that a test never states are kept`() async {
        let stock = TestStore(Stock())
        let count = 70_000
        for number in 1...count { stock.store.emit(number) }
        let found = await failures { await stock.finish() }
        // The first of the kept actions, 20 of them, and the number of the others.
        #expect(found.first?.message.contains("    emitted \(count - 65_536 + 1)\n") == true)
        #expect(found.first?.message.contains("    … (\(65_536 - 20) more)") == true)
    }

    @Test func `a failure in a detached task is reported`() async {
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
