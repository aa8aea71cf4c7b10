import ConfluxSimulation

/// A seed that once showed a mistake. The meaning of a seed changes with the code, so each mistake has a test of its
/// own, too.
struct Regression: Sendable {
    var seed: UInt64
    var states = SampleStates.journal
    var world: SimulationWorld?
    /// The mistake.
    var cause: String

    var simulation: Simulation {
        Simulation(seed: seed, states: states.states, world: world)
    }

    /// The options that repeat it.
    var options: String {
        (states == .journal ? "" : " --states \(states)") + (world.map { " --world \($0)" } ?? "")
    }

    static let all: [Regression] =
        found(
            [1_000_059, 1_000_182, 1_000_881],
            "what a node had not applied when its history was lost was told to be done")
        + found(
            [1_000_072],
            "what was refused was told to be done where the session was forgotten meanwhile")
        + found(
            [1_000_186],
            "a store with an executor of its own told of what it had only been given")
        + found(
            [60, 135, 147, 186], of: .service, in: .mixed,
            "an action for a whole state was told to be refused, and a store that was opened took it"
        )
        + found([87], of: .stock, in: .mixed, "the same, with what is kept aside of the store")
        + found(
            [778_000_912, 779_001_463, 5_000_001, 5_000_218, 5_000_943],
            "what a store was frozen for was told to be done there, once its entries came from aside"
        )
        + found(
            [779_000_424], in: .mixed,
            "what a store was frozen for was told to be done there, once its entries came from aside"
        )
        + found(
            [40], "an action was told to be done, and a store that was opened meanwhile refused it"
        )
        + found(
            [778_000_451, 779_000_156, 779_000_934],
            "the checks did not see what a store applied while it was opened, or behind its closing"
        )
        + found(
            [10_003_839, 103_895_455_588_474], in: .mixed,
            "the checks had a replica that stopped within a commit apply what was skipped")
        + found([10_001_452], in: .mixed, "the checks counted a vote that was sent back")
        + found(
            [10_001_430], in: .mixed,
            "the checks denied that a copy of the log brings back what was withdrawn")
        + found([10_009_244], in: .mixed, "the checks waited for a store that is frozen")
        + found(
            [518, 675], of: .service,
            "the checks took a store that was dropped meanwhile for one that never was")
        + found(
            [133_532_292_870_399],
            "the checks took a store that was opened behind the loss of a closed one for closed")
        + found(
            [228_999_227_374_416], of: .service,
            "the checks did not see what a store took that was about to be open")
        + found(
            [5_122_316_834_195], of: .service,
            "a snapshot waited for ever behind that of a store which was closed while it came")
        + found(
            [235_179_627_313_303],
            "two histories of a log gave a process two sessions of one number and one nonce")
        + found(
            [233_934_786_861_113, 233_934_786_870_158],
            "a store was released by a snapshot that the floor had passed while it was saved")
        + found(
            [240_252_259_488_568],
            "the checks had a replica go on by a snapshot of others that differ for ever")
        + found(
            [240_252_259_495_723, 240_252_259_511_384],
            "the checks had a cluster catch up whose disk was slower than its log grew")
        + found(
            [153_213_086_323_745, 153_213_086_340_110],
            "a barrier waited for ever for a number that the log had lost with its end")
        + found(
            [226_236_160_678_120],
            "a copy of a hello, which waited for the log, ended what its node hosted since")
        + found(
            [122_604_227_635_850], in: .mixed,
            "the checks forgot what spoilt replicas had agreed upon when a copy brought it back")
        + found(
            [6_518_484_456_955], of: .service,
            "who opened a store was sent to read damage that what was kept aside lies behind")
        + found(
            [6_518_484_449_918], of: .service,
            "the checks had the log give up a part of a commit")
        + found(
            [18_298_702_667_452],
            "a replica had the version that its store got by an entry that the log lost")
        + found(
            [153_771_244_441_749],
            "a receipt was waited for with another entry, of a history that the log had lost")
        + found(
            [124_197_931_304_426], of: .service, in: .poisoned,
            "nodes forgot what was refused sooner than the checks took them to")
        + found(
            [70_804_493_209_015],
            "the checks had a replica go on by a snapshot that the log had lost, and nobody else had"
        )
        + found(
            [242_876_163_028_372],
            "the checks did not count a vote that arrived after its node had left")
        + found(
            [86_989_511_304_103, 86_989_511_304_259, 86_989_511_304_383], in: .standbys,
            "a log whose checkpoint could not be reached was taken for damaged")
        + found(
            [239_674_002_343_058], in: .standbys,
            "a log whose beginning was given up while a standby read it was taken for damaged")
        + found(
            [268_595_807_070_434], in: .standbys,
            "the checks had a program know of an entry that no sequencer knew to be in the log")
        + found(
            [81_725_526_499_199],
            "a replica kept an entry that was skipped, from a snapshot that the sequencer had lost")

    private static func found(
        _ seeds: [UInt64], of states: SampleStates = .journal, in world: SimulationWorld? = nil,
        _ cause: String
    ) -> [Regression] {
        seeds.map { Regression(seed: $0, states: states, world: world, cause: cause) }
    }
}
