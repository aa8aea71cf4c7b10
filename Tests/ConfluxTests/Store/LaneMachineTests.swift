import Testing

@testable import Conflux

/// Every order in which a few threads can take their steps at one lane. A step is what a thread does while it
/// holds the lane's mutex, or between two such times.
@Suite struct LaneMachineTests {
    @Test(arguments: [
        [LaneWorld.Role.dispatches(2), .dispatches(2)],
        [.dispatches(1), .dispatches(1), .dispatches(1)],
        [.dispatches(2), .sends(2)],
        [.dispatches(1), .sends(1), .holds],
        [.dispatches(1), .holds, .holds],
        [.dispatches(1), .dispatches(1), .closes],
        [.dispatches(1), .sends(1), .holds, .closes],
    ])
    func `every job is done once and in order, by one thread at a time`(roles: [LaneWorld.Role]) {
        #expect(explore(LaneWorld(roles, isImmediate: true)) > 50)
    }

    @Test(arguments: [
        [LaneWorld.Role.sends(2), .sends(2)],
        [.sends(1), .sends(1), .holds],
        [.sends(1), .holds, .closes],
        [.sends(2), .closes],
        [.dispatches(2), .dispatches(1)],
        [.dispatches(2), .sends(2)],
        [.dispatches(1), .sends(1), .holds],
        [.dispatches(2), .sends(1), .closes],
    ])
    func `an executor gets one run at a time, and every job is in one`(roles: [LaneWorld.Role]) {
        #expect(explore(LaneWorld(roles, isImmediate: false)) > 50)
    }
}

/// How a lane uses its machine, in single steps.
struct LaneWorld: ExploredWorld {
    enum Role: Equatable {
        /// A thread that may wait dispatches this many actions.
        case dispatches(Int)
        /// A thread that may not wait, or need not, dispatches this many actions.
        case sends(Int)
        /// A hold is put into the line, and ends at some time.
        case holds
        case closes
    }

    fileprivate enum Job: Hashable, Sendable {
        case number(Int)
        case turn(Int)
        case hold(Int)
    }

    fileprivate enum Doing: Hashable {
        case idle, placing(Int), claiming, draining, taking, nexting, leaving, returning, ending,
            gone
        case entered(Int)
        case working([Job])
        case arriving(Int)
        case closing
    }

    fileprivate enum Phase { case open, reached, over }

    fileprivate struct Participant: Hashable {
        var doing = Doing.idle
        /// Whether it serves on the executor.
        var isRun = false
        var left = 0
        /// The turn that it waits for.
        var turn: Int?
    }

    /// The holds by their numbers. Those of turns have numbers from 100.
    private static let holds: [Int: any LaneHold] = {
        var holds: [Int: any LaneHold] = [:]
        for number in 0..<100 { holds[number] = Hold() }
        for number in 100..<200 { holds[number] = DispatchTurn() }
        return holds
    }()

    private static let numbers = Dictionary(
        uniqueKeysWithValues: holds.map { (ObjectIdentifier($0.value), $0.key) })

    private final class Hold: LaneHold {
        func arrive(_ lane: Lane) -> Bool { false }
        func abandon(_ lane: Lane) {}
    }

    private let roles: [Role]
    private var machine: LaneMachine<Job>
    private var participants: [Participant]
    private var phases: [Int: Phase] = [:]
    private var isReleased = false
    private var ends = 0
    /// The jobs, in the order in which they entered the lane or its line.
    private var arrived: [Int] = []
    private var done: [Int] = []
    private var dropped: [Int] = []
    /// How many jobs are in the line.
    private var standing = 0
    /// For each participant, how many jobs it has begun.
    private var count: [Int]

    init(_ roles: [Role], isImmediate: Bool) {
        self.roles = roles
        machine = LaneMachine(isImmediate: isImmediate)
        // The threads of a queue will follow after these.
        participants = Array(repeating: Participant(), count: roles.count)
        count = Array(repeating: 0, count: roles.count)
        for (index, role) in roles.enumerated() {
            switch role {
            case .dispatches(let number), .sends(let number): participants[index].left = number
            case .holds, .closes: participants[index].left = 1
            }
        }
    }

    var participantCount: Int { participants.count }

    struct Key: Hashable {
        fileprivate let participants: [Participant]
        fileprivate let jobs: [[Job]]
        fileprivate let phases: [Int: Phase]
        let flags: [Bool]
        let numbers: [Int]
        let ended: [[Int]]
    }

    var key: Key {
        let hold = machine.hold.flatMap { Self.numbers[ObjectIdentifier($0)] }
        return Key(
            participants: participants, jobs: [machine.waiting, machine.ahead], phases: phases,
            flags: [
                machine.isBusy, machine.isClosed, machine.hasEnded, machine.hasServerJob,
                machine.isHandingOver, machine.handsOverAgain, isReleased,
            ],
            numbers: [
                machine.waitingCount, machine.holdCount, Int(machine.server), hold ?? -1, ends,
            ],
            ended: [arrived, done, dropped])
    }

    private var serving: Int {
        participants.count {
            switch $0.doing {
            case .entered, .draining, .taking, .working, .nexting, .leaving: true
            case .idle, .placing, .claiming, .returning, .ending, .closing, .gone, .arriving: false
            }
        }
    }

    var faults: [String] {
        var faults: [String] = []
        if serving > 1 { faults.append("two threads serve") }
        if serving == 1, !machine.isBusy { faults.append("a thread serves a lane that is free") }
        if machine.waitingCount != standing {
            faults.append("\(standing) stand in line, not \(machine.waitingCount)")
        }
        let isClaimed = participants.contains {
            if case .claiming = $0.doing { true } else { false }
        }
        if standing > 0, !machine.isBusy, !isClaimed { faults.append("a job waits at a free lane") }
        if !isReleased, done != Array(arrived.prefix(done.count)) {
            faults.append("\(done) were done of \(arrived)")
        }
        if Set(done + dropped).count != (done + dropped).count {
            faults.append("a job ended twice")
        }
        if ends > 1 { faults.append("the lane ended twice") }
        return faults
    }

    var faultsAtEnd: [String] {
        var faults: [String] = []
        let all = roles.indices.flatMap { index in (0..<count[index]).map { index * 10 + $0 } }
        if Set(done + dropped) != Set(all) { faults.append("\(done), \(dropped) ended of \(all)") }
        if machine.isBusy || standing > 0 { faults.append("the lane is not free") }
        if ends != (roles.contains(.closes) ? 1 : 0) {
            faults.append("the lane ended \(ends) times")
        }
        if participants.contains(where: { $0.left > 0 || $0.turn != nil }) {
            faults.append("a thread waits for ever")
        }
        return faults
    }

    // MARK: Steps

    mutating func step(_ index: Int) -> Bool {
        switch participants[index].doing {
        case .gone: return false
        case .idle: return begin(index)
        case .placing(let job): place(job, index)
        case .claiming: follow(machine.claim(), index)
        case .entered(let job):
            end(job)
            let isDone = machine.leaveEntered()
            participants[index].doing =
                isDone ? .idle : machine.isImmediate ? .draining : .leaving
        case .draining:
            machine.beginDraining(by: UInt(index + 1))
            participants[index].doing = .taking
        case .taking: take(index)
        case .working(let jobs): work(jobs, index)
        case .arriving(let hold): arrive(at: hold, index)
        case .nexting: goOn(index)
        case .leaving: follow(machine.leave(), index)
        case .returning:
            if machine.handOverReturned() {
                startRun()
            } else {
                participants[index].doing = .ending
            }
        case .closing: close(index)
        case .ending:
            if isReleased, machine.end() { ends += 1 }
            participants[index].doing = .idle
        }
        return true
    }

    private mutating func begin(_ index: Int) -> Bool {
        if let turn = participants[index].turn {
            switch phases[turn] {
            case .open:
                // Nothing has happened for a long time, so the thread gives up the turn.
                phases[turn] = .over
            case .reached:
                phases[turn] = .over
                if machine.takeUp(after: Self.holds[turn]!) { participants[index].doing = .leaving }
            case .over, nil: break
            }
            participants[index].turn = nil
            return true
        }
        guard participants[index].left > 0 else { return false }
        switch roles[index] {
        case .dispatches, .sends:
            participants[index].left -= 1
            let job = next(index)
            // If an executor serves the line, only its own threads run jobs at once.
            if !machine.isImmediate, case .sends = roles[index] {
                participants[index].doing = .placing(job)
                return true
            }
            switch machine.enter(by: UInt(index + 1), isPaused: false) {
            case .free:
                arrived.append(job)
                participants[index].doing = .entered(job)
            case .busy, .behind: participants[index].doing = .placing(job)
            case .closed: dropped.append(job)
            case .paused: preconditionFailure("nothing pauses the flow")
            }
        case .holds:
            if count[index] == 0 {
                participants[index].doing = .placing(next(index))
            } else {
                // The hold ends.
                participants[index].left = 0
                phases[index * 10] = .over
                if machine.takeUp(after: Self.holds[index * 10]!) {
                    participants[index].doing = .leaving
                }
            }
        case .closes:
            participants[index].left = 0
            isReleased = true
            participants[index].doing = .closing
        }
        return true
    }

    private mutating func next(_ index: Int) -> Int {
        defer { count[index] += 1 }
        return index * 10 + count[index]
    }

    private mutating func append(_ job: Job, _ index: Int) {
        let hold: Int? =
            switch job {
            case .number: nil
            case .turn(let number), .hold(let number): number
            }
        machine.append(job, waitingFor: hold.flatMap { Self.holds[$0] }, by: UInt(index + 1))
        standing += 1
        if let hold, phases[hold] == nil { phases[hold] = .open }
    }

    private mutating func place(_ job: Int, _ index: Int) {
        guard machine.placement(isPaused: false) == .kept else {
            dropped.append(job)
            return participants[index].doing = .idle
        }
        let isIdle = !machine.isBusy
        arrived.append(job)
        if roles[index] == .holds {
            append(.hold(job), index)
        } else {
            if case .dispatches = roles[index], machine.mayTakeTurns {
                participants[index].turn = job + 100
                append(.turn(job + 100), index)
            }
            append(.number(job), index)
        }
        participants[index].doing = isIdle ? .claiming : .idle
    }

    private mutating func follow(_ duty: LaneMachine<Job>.Duty, _ index: Int) {
        switch duty {
        case .none: participants[index].doing = .ending
        case .serve: participants[index].doing = .draining
        case .handOver:
            startRun()
            participants[index].doing = .returning
        }
    }

    private mutating func startRun() {
        var free = roles.count
        while free < participants.count {
            if case .idle = participants[free].doing { break }
            free += 1
        }
        if free == participants.count { participants.append(Participant()) }
        participants[free].isRun = !machine.isImmediate
        participants[free].doing = machine.isImmediate ? .draining : .taking
    }

    private mutating func take(_ index: Int) {
        var jobs: [Job] = []
        machine.take(&jobs)
        standing -= jobs.count
        participants[index].doing = .working(jobs)
    }

    private mutating func work(_ jobs: [Job], _ index: Int) {
        var jobs = jobs
        switch jobs.popLast() {
        case nil:
            return participants[index].doing = participants[index].isRun ? .leaving : .nexting
        case .number(let job): end(job)
        case .turn(let hold), .hold(let hold):
            if isReleased {
                abandon(hold)
                break
            }
            let (rest, number) = (jobs, jobs.count)
            guard machine.wait(for: Self.holds[hold]!, before: &jobs) else {
                abandon(hold)
                for job in rest.reversed() { drop(job) }
                jobs = []
                break
            }
            standing += number
            if hold < 100 { done.append(hold) }
            return participants[index].doing = .arriving(hold)
        }
        participants[index].doing = .working(jobs)
    }

    private mutating func arrive(at hold: Int, _ index: Int) {
        let isOver = phases[hold] == .over
        if !isOver, hold >= 100 { phases[hold] = .reached }
        if isOver, machine.takeUp(after: Self.holds[hold]!) {
            participants[index].doing = participants[index].isRun ? .leaving : .nexting
        } else {
            participants[index].doing = .ending
        }
    }

    private mutating func goOn(_ index: Int) {
        switch machine.next() {
        case .line: participants[index].doing = .taking
        case .othersLine:
            startRun()
            participants[index].doing = .idle
        case .nothing: participants[index].doing = .ending
        }
    }

    private mutating func close(_ index: Int) {
        let (hold, jobs) = machine.close()
        standing = 0
        if let hold, let number = Self.numbers[ObjectIdentifier(hold)] {
            phases[number] = .over
        }
        for job in jobs { drop(job) }
        participants[index].doing = .ending
    }

    private mutating func end(_ job: Int) {
        if isReleased { dropped.append(job) } else { done.append(job) }
    }

    private mutating func drop(_ job: Job) {
        switch job {
        case .number(let job): dropped.append(job)
        case .turn(let hold), .hold(let hold): abandon(hold)
        }
    }

    private mutating func abandon(_ hold: Int) {
        phases[hold] = .over
        if hold < 100, !done.contains(hold) { dropped.append(hold) }
    }
}
