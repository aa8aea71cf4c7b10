import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Synchronization
import Testing

@Suite struct ThreadTests {
    @Test func `a call before the sleep is not lost`() throws {
        let waker = try Waker()
        waker.wake()
        waker.wake()
        #expect(waker.waitForCall(timeout: deadline))
        #expect(!waker.waitForCall(timeout: .zero))
    }

    @Test func `a call ends a sleep`() throws {
        let waker = try Waker()
        let thread = try NamedThread("caller") { waker.wake() }
        #expect(waker.waitForCall(timeout: deadline))
        thread.join()
    }

    @Test func `a sleep ends when the time is over and not before`() throws {
        let waker = try Waker()
        let start = ContinuousClock.now
        #expect(!waker.waitForCall(timeout: .milliseconds(20)))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
    }

    @Test(arguments: [Duration.zero, Poller.pollingMax])
    func `a poller ends for a call, a message, or the time`(busyMax: Duration) throws {
        let pair = try Pair()
        _ = try pair.greet()
        let waker = try Waker()
        let poller = Poller(waker: waker)
        let router = try poller.add(pair.router)
        let dealer = try poller.add(pair.dealer)
        #expect(try poller.wait(timeout: .zero).isTimeout)
        waker.wake()
        let woken = try poller.wait(timeout: deadline, pollingFor: busyMax)
        #expect(woken.isWoken && !woken.isReadable(router))
        #expect(try !poller.wait(timeout: .zero, pollingFor: busyMax).isWoken)
        // The last wait was short, so this one begins with polling if it may.
        let start = ContinuousClock.now
        #expect(try poller.wait(timeout: .milliseconds(20), pollingFor: busyMax).isTimeout)
        #expect(ContinuousClock.now - start >= .milliseconds(20))

        #expect(try pair.dealer.send([1]) == .sent)
        let readable = try poller.wait(timeout: deadline, pollingFor: busyMax)
        #expect(readable.isReadable(router) && !readable.isWoken && !readable.isReadable(dealer))
        // It was not taken, so it is still ready, even with a call.
        waker.wake()
        let both = try poller.wait(timeout: deadline, pollingFor: busyMax)
        #expect(both.isWoken && both.isReadable(router))
    }

    @Test func `a thread whose waits are long does not poll`() throws {
        let poller = Poller(waker: try Waker())
        func processorTime() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let begun = processorTime()
        for _ in 0..<30 {
            let readiness = try poller.wait(
                timeout: .milliseconds(20), pollingFor: Poller.pollingMax)
            #expect(readiness.isTimeout)
        }
        #expect(processorTime() - begun < Poller.pollingMax * 15)
    }

    /// The calls arrive while the threads poll, while they sleep, and in between.
    @Test(arguments: [Duration.zero, .microseconds(1), .microseconds(30), Poller.pollingMax])
    func `no call is lost between threads that poll before they sleep`(busyMax: Duration) throws {
        let wakers = [try Waker(), try Waker()]
        let count = 4_000
        func exchange(_ mine: Int) -> Int {
            let poller = Poller(waker: wakers[mine])
            var calls = 0
            while calls < count {
                guard
                    let readiness = try? poller.wait(timeout: deadline, pollingFor: busyMax),
                    readiness.isWoken
                else { break }
                calls += 1
                wakers[1 - mine].wake()
            }
            return calls
        }
        let answered = Atomic(0)
        let thread = try NamedThread("answerer") {
            answered.store(exchange(1), ordering: .relaxed)
        }
        wakers[1].wake()
        #expect(exchange(0) == count)
        thread.join()
        #expect(answered.load(ordering: .relaxed) == count)
    }

    @Test func `a poller forgets removed sockets and refuses closed ones`() throws {
        let pair = try Pair()
        let poller = Poller(waker: try Waker())
        let router = try poller.add(pair.router)
        let peer = try pair.greet()
        let dealer = try poller.add(pair.dealer)
        #expect(try pair.router.send([2], to: peer) == .sent)
        #expect(try poller.wait(timeout: deadline).isReadable(dealer))
        poller.remove(dealer)
        pair.dealer.close()
        let readiness = try poller.wait(timeout: deadline)
        #expect(readiness.isReadable(router) && !readiness.isReadable(dealer))
        pair.router.close()
        #expect(code { _ = try poller.wait(timeout: .zero) } == .closed)
        #expect(code { _ = try poller.add(pair.router) } == .closed)
        poller.remove(router)
        #expect(try poller.wait(timeout: .zero).isTimeout)
    }

    @Test func `a poller takes a bounded number of sockets, and has room again`() throws {
        let dealers = try (0...Poller.socketsMax).map { _ in try ClientSocket(.dealer) }
        let poller = Poller(waker: try Waker())
        let tokens = try dealers.dropLast().map { try poller.add($0) }
        #expect(code { _ = try poller.add(dealers[Poller.socketsMax]) } == .tooManyOpen)
        poller.remove(tokens[7])
        _ = try poller.add(dealers[Poller.socketsMax])
        for dealer in dealers { dealer.close() }
    }

    @Test func `a mailbox delivers elements in the order of posting`() throws {
        let mailbox = Mailbox<Int>(capacity: 3, waker: try Waker())
        var batch = [9]
        #expect(mailbox.drain(into: &batch))
        #expect(batch.isEmpty)
        #expect(
            (1...5).map { mailbox.post($0) } == [.accepted, .accepted, .accepted, .full, .full])
        #expect(mailbox.count == 3)
        mailbox.drain(into: &batch)
        #expect(batch == [1, 2, 3])
        #expect(mailbox.post(6) == .accepted)
        mailbox.close()
        #expect(mailbox.post(7) == .closed)
        #expect(!mailbox.wait(into: &batch))
        #expect(batch == [6])
        #expect(!mailbox.wait(into: &batch))
        #expect(batch.isEmpty)
    }

    @Test func `closing a mailbox ends a wait`() throws {
        let mailbox = Mailbox<Int>(capacity: 3, waker: try Waker())
        let thread = try NamedThread("closer") { mailbox.close() }
        var batch: [Int] = []
        #expect(!mailbox.wait(into: &batch, timeout: deadline))
        thread.join()
    }

    @Test func `a wait for a mailbox ends when the time is over`() throws {
        let mailbox = Mailbox<Int>(capacity: 3, waker: try Waker())
        var batch: [Int] = []
        #expect(mailbox.wait(into: &batch, timeout: .milliseconds(5)))
        #expect(batch.isEmpty)
    }

    /// Every element must wake the taker. Otherwise the taker would sleep past the deadline.
    @Test func `no element is lost and none overtakes another of its poster`() throws {
        let posters = 3
        let each = 20_000
        let requests = Mailbox<(poster: Int, number: Int)>(capacity: 64, waker: try Waker())
        let pollerWaker = try Waker()
        let answers = Mailbox<(poster: Int, number: Int)>(capacity: 1 << 20, waker: pollerWaker)
        let plain = try NamedThread("plain taker") {
            var batch: [(poster: Int, number: Int)] = []
            while requests.wait(into: &batch) || !batch.isEmpty {
                for element in batch { answers.post(element) }
            }
        }
        let threads = try (0..<posters).map { poster in
            try NamedThread("poster \(poster)") {
                for number in 0..<each {
                    while requests.post((poster, number)) == .full { sched_yield() }
                }
            }
        }
        let poller = Poller(waker: pollerWaker)
        var next = [Int](repeating: 0, count: posters)
        var batch: [(poster: Int, number: Int)] = []
        let end = ContinuousClock.now + deadline
        while next != [Int](repeating: each, count: posters) {
            answers.drain(into: &batch)
            for element in batch {
                #expect(element.number == next[element.poster])
                next[element.poster] = element.number + 1
            }
            if batch.isEmpty {
                let left = end - ContinuousClock.now
                #expect(try poller.wait(timeout: left).isWoken)
                if left <= .zero { break }
            }
        }
        for thread in threads { thread.join() }
        requests.close()
        plain.join()
        #expect(next == [Int](repeating: each, count: posters))
    }

    @Test func `a thread has its name and its stack and may be joined twice`() throws {
        let seen = Mutex("")
        let depth = Atomic(0)
        let thread = try NamedThread("conflux-test", stackBytes: 64 << 20) {
            let name = currentThreadName()
            seen.withLock { $0 = name }
            depth.store(descend(12_000), ordering: .relaxed)
        }
        thread.join()
        thread.join()
        #expect(seen.withLock { $0 } == "conflux-test")
        let reached = depth.load(ordering: .relaxed)
        #expect(reached == 12_000)
    }

    @Test(arguments: [NamedThread.Priority.normal, .low])
    func `a thread of low priority is below its process, any other is like it`(
        _ priority: NamedThread.Priority
    ) throws {
        let seen = Mutex(CurrentPriority.ofCaller())
        let process = seen.withLock { $0 }
        let thread = try NamedThread("conflux-test", priority: priority) {
            let own = CurrentPriority.ofCaller()
            seen.withLock { $0 = own }
        }
        thread.join()
        let own = seen.withLock { $0 }
        switch priority {
        case .normal: #expect(own == process)
        case .low: #expect(own == CurrentPriority.low)
        }
        #expect(CurrentPriority.ofCaller() == process)
    }

    @Test func `a thread may own sockets that were made elsewhere`() throws {
        let router = try RouterSocket(settings: .test)
        let endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        let served = Atomic(false)
        let thread = try NamedThread("server") {
            do {
                let input = try wait(for: router) { try router.receive() }
                if case .message(let peer, let body) = input {
                    served.store(
                        try router.send(body, to: peer) == .sent, ordering: .relaxed)
                }
            } catch {
                Issue.record("the server failed: \(error)")
            }
        }
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(endpoint)
        let answer = try wait(for: dealer) {
            while let event = try dealer.receive() {
                if case .message(let body) = event { return body as Bytes? }
                if case .connected = event { #expect(try dealer.send([5]) == .sent) }
            }
            return nil
        }
        #expect(answer == [5])
        thread.join()
        let isServed = served.load(ordering: .relaxed)
        #expect(isServed)
    }

    @Test func `a stack outside its bounds is refused`() {
        #expect(code { _ = try NamedThread("x", stackBytes: 1) {} } == .invalidSetting)
    }
}

/// Recursion that needs a kilobyte for each level: 12 MB for the test above, more than a usual stack.
@inline(never)
private func descend(_ levels: Int) -> Int {
    guard levels > 0 else { return 0 }
    return withUnsafeTemporaryAllocation(byteCount: 1_000, alignment: 8) { space in
        space[0] = UInt8(truncatingIfNeeded: levels)
        return descend(levels - 1) + (space[0] == UInt8(truncatingIfNeeded: levels) ? 1 : 0)
    }
}

/// The system's name for the calling thread.
private func currentThreadName() -> String {
    #if os(Linux)
        let text = FileManager.default.contents(atPath: "/proc/thread-self/comm") ?? Data()
        return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)
    #else
        return Thread.current.name ?? ""
    #endif
}

/// The system's priority of a thread.
private enum CurrentPriority {
    #if os(Linux)
        static let low: Int32 = 10

        /// The nice value. A value above 0 lets others go first.
        static func ofCaller() -> Int32 {
            getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        }
    #else
        static let low = QOS_CLASS_UTILITY.rawValue

        static func ofCaller() -> UInt32 { qos_class_self().rawValue }
    #endif
}
