import Testing

@testable import Conflux

/// Every order in which a few threads can take their steps at one gate. A step is what a thread does while it
/// holds the gate's mutex, or with one of the gate's atomics.
@Suite struct FlowGateMachineTests {
    @Test(arguments: [
        [GateWorld.Role.passes(2), .locks(1)],
        [.passes(1), .passes(1), .locks(1)],
        [.passes(1), .locks(2)],
        [.locks(1), .locks(1)],
        [.passes(1), .locks(1), .locks(0)],
        [.locks(2), .locks(1)],
        [.passes(1), .locks(2), .locks(0)],
    ])
    func `every dispatch passes once and in order, and none between those of a holder`(
        roles: [GateWorld.Role]
    ) {
        #expect(explore(GateWorld(roles)) > 50)
    }
}

/// How a gate uses its machine, in single steps.
struct GateWorld: ExploredWorld {
    enum Role: Equatable {
        /// A thread dispatches this many times.
        case passes(Int)
        /// A thread takes a lock, dispatches this many times under it, and releases it.
        case locks(Int)
    }

    fileprivate struct Job: Hashable {
        let number: Int
        let holder: UInt64?
        /// The locks that were held at the time of its dispatch.
        let held: [UInt64]
    }

    fileprivate enum Doing: Hashable {
        case idle, looking(Job), placing(Job), leaving, lookingAgain, beginning, draining
        /// It was counted and found the gate closed: it takes its count back, and then acquires the mutex.
        case backing(Job), lookingBack(Job), beginningBack(Job), drainingBack(Job), coming(Job)
    }

    fileprivate struct Participant: Hashable {
        var doing = Doing.idle
        var left = 0
        var isLocking = false
        var hasLocked = false
    }

    private let roles: [Role]
    private var machine = FlowGateMachine<Job>()
    private var closed = false
    private var passing = 0
    private var participants: [Participant]
    private var held: [UInt64] = []
    /// The locks whose holders placed something while their lock was in force.
    private var used: Set<UInt64> = []
    private var placed: [Job] = []
    private var parked: [Int] = []
    private var problem: String?

    init(_ roles: [Role]) {
        self.roles = roles
        participants = roles.map { role in
            switch role {
            case .passes(let count): Participant(left: count)
            case .locks(let count): Participant(left: count, isLocking: true)
            }
        }
    }

    var participantCount: Int { participants.count }

    struct Key: Hashable {
        fileprivate let participants: [Participant]
        fileprivate let parked: [[Job]]
        let flags: [Bool]
        let numbers: [[Int]]
        let locks: [[UInt64]]
    }

    var key: Key {
        Key(
            participants: participants,
            parked: ([machine.parked] + machine.locks.map(\.parked)).map(Self.jobs),
            flags: [machine.isDraining, closed],
            numbers: [[passing], parked, placed.map(\.number)],
            locks: [machine.locks.map(\.id), held, used.sorted()])
    }

    private static func jobs(of line: Line<Job>) -> [Job] {
        var line = line
        var jobs: [Job] = []
        while let job = line.removeFirst() { jobs.append(job) }
        return jobs
    }

    private var draining: Int {
        participants.count {
            switch $0.doing {
            case .draining, .drainingBack: true
            default: false
            }
        }
    }

    var faults: [String] {
        var faults = problem.map { [$0] } ?? []
        if draining > 1 { faults.append("two threads resume what is parked") }
        let numbers = placed.map(\.number)
        if Set(numbers).count != numbers.count { faults.append("a dispatch passed twice") }
        for index in participants.indices {
            let mine = numbers.filter { $0 / 10 == index }
            if mine != mine.sorted() { faults.append("\(mine) are not in order") }
        }
        for id in participants.indices.map({ UInt64($0 + 1) }) {
            let places = placed.indices.filter { placed[$0].holder == id }
            if let first = places.first, let last = places.last, last - first >= places.count {
                faults.append("\(numbers): something comes between those of \(id)'s holder")
            }
        }
        // Dispatches that were parked without a lock pass in the order in which they were parked.
        let others = placed.filter { $0.holder == nil }.map(\.number)
        let resumed = others.filter { parked.contains($0) }
        if resumed != parked.filter({ resumed.contains($0) }) {
            faults.append("\(resumed) overtook")
        }
        return faults
    }

    var faultsAtEnd: [String] {
        var faults: [String] = []
        let count = roles.reduce(0) { sum, role in
            switch role {
            case .passes(let count), .locks(let count): sum + count
            }
        }
        if placed.count != count { faults.append("\(placed.count) of \(count) passed") }
        if machine.isClosed || closed || passing != 0 { faults.append("the gate is not open") }
        return faults
    }

    mutating func step(_ index: Int) -> Bool {
        switch participants[index].doing {
        case .idle: return begin(index)
        case .looking(let job):
            participants[index].doing = closed ? .backing(job) : .placing(job)
        case .placing(let job):
            place(job, under: machine.lockInForce)
            participants[index].doing = .leaving
        case .leaving:
            passing -= 1
            participants[index].doing = passing == 0 ? .lookingAgain : .idle
        case .lookingAgain: participants[index].doing = closed ? .beginning : .idle
        case .beginning: participants[index].doing = beginDraining() ? .draining : .idle
        case .draining: if !resume() { participants[index].doing = .idle }
        case .backing(let job):
            passing -= 1
            participants[index].doing = passing == 0 ? .lookingBack(job) : .coming(job)
        case .lookingBack(let job):
            participants[index].doing = closed ? .beginningBack(job) : .coming(job)
        case .beginningBack(let job):
            participants[index].doing = beginDraining() ? .drainingBack(job) : .coming(job)
        case .drainingBack(let job): if !resume() { participants[index].doing = .coming(job) }
        case .coming(let job):
            if machine.pass(job, holding: job.holder, isQuiet: passing == 0) != nil {
                if job.holder == nil { parked.append(job.number) }
                participants[index].doing = .idle
            } else {
                passing += 1
                participants[index].doing = .placing(job)
            }
        }
        return true
    }

    private mutating func begin(_ index: Int) -> Bool {
        let id = UInt64(index + 1)
        let participant = participants[index]
        if participant.isLocking, !participant.hasLocked {
            participants[index].hasLocked = true
            machine.take(id)
            closed = true
            held.append(id)
        } else if participant.left > 0 {
            participants[index].left -= 1
            passing += 1
            let holder = participant.isLocking ? id : nil
            participants[index].doing = .looking(
                Job(number: index * 10 + 9 - participants[index].left, holder: holder, held: held))
        } else if held.contains(id) {
            machine.release(id)
            held.removeAll { $0 == id }
            participants[index].doing = .beginning
        } else {
            return false
        }
        return true
    }

    private mutating func beginDraining() -> Bool {
        defer { closed = machine.isClosed }
        return machine.beginDraining(isQuiet: passing == 0)
    }

    private mutating func resume() -> Bool {
        let inForce = machine.lockInForce
        let job = machine.next(isQuiet: passing == 0)
        closed = machine.isClosed
        if let job { place(job, under: inForce) }
        return job != nil
    }

    private mutating func place(_ job: Job, under inForce: UInt64?) {
        placed.append(job)
        guard let inForce else { return }
        if held.contains(inForce), inForce != held.first {
            problem = "\(inForce) is in force among \(held)"
        }
        if job.holder == inForce {
            used.insert(inForce)
        } else if used.contains(inForce) {
            problem = "\(job.number) comes between the holder's"
        } else if job.held.contains(inForce) {
            problem = "\(job.number) passed a lock that it found"
        }
    }
}
