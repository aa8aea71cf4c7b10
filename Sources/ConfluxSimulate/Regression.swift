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
            "an action that a node had not applied when its history was lost was reported as applied"
        )
        + found(
            [1_000_072],
            "a refused action was reported as applied after its session was forgotten")
        + found(
            [1_000_186],
            "a store with its own executor reported actions before it had applied them")
        + found(
            [60, 135, 147, 186], of: .service, in: .mixed,
            "an action for a whole state was reported as refused, and a newly opened store applied it"
        )
        + found(
            [87], of: .stock, in: .mixed, "the same, with entries of the store that were kept aside"
        )
        + found(
            [778_000_912, 779_001_463, 5_000_001, 5_000_218, 5_000_943],
            "an action that a frozen store did not get was reported as applied, with entries from aside"
        )
        + found(
            [779_000_424], in: .mixed,
            "an action that a frozen store did not get was reported as applied, with entries from aside"
        )
        + found(
            [40], "an action was reported as applied, and a store that was just opened refused it"
        )
        + found(
            [778_000_451, 779_000_156, 779_000_934],
            "the checks missed what a store applied while it was opened, or after it was closed"
        )
        + found(
            [10_003_839, 103_895_455_588_474], in: .mixed,
            "the checks let a replica that stopped within a commit apply a skipped entry")
        + found([10_001_452], in: .mixed, "the checks counted a rejected vote")
        + found(
            [10_001_430], in: .mixed,
            "the checks denied that a copy of the log may bring back a withdrawn action")
        + found([10_009_244], in: .mixed, "the checks waited for a frozen store")
        + found(
            [518, 675], of: .service,
            "the checks mistook a dropped store for one that never existed")
        + found(
            [133_532_292_870_399],
            "the checks mistook a store that was opened after the loss of a closed one for closed")
        + found(
            [228_999_227_374_416], of: .service,
            "the checks missed what a store applied that was about to be open")
        + found(
            [5_122_316_834_195], of: .service,
            "a snapshot waited for ever after that of a store which was closed during the load")
        + found(
            [235_179_627_313_303],
            "two histories of a log gave a process two sessions with the same number and nonce")
        + found(
            [233_934_786_861_113, 233_934_786_870_158],
            "a store began with a snapshot that the floor had passed while it was saved")
        + found(
            [240_252_259_488_568],
            "the checks let a replica continue with a snapshot of replicas that differ for ever")
        + found(
            [240_252_259_495_723, 240_252_259_511_384],
            "the checks expected a cluster to catch up whose disk was slower than its log grew")
        + found(
            [153_213_086_323_745, 153_213_086_340_110],
            "a barrier waited for ever for a number in the lost end of the log")
        + found(
            [226_236_160_678_120],
            "a copy of a hello that waited for the log ended what its node had hosted since")
        + found(
            [122_604_227_635_850], in: .mixed,
            "the checks forgot what diverged replicas had agreed on when a copy brought it back")
        + found(
            [6_518_484_456_955], of: .service,
            "a node that opened a store was told to read damaged entries before those kept aside")
        + found(
            [6_518_484_449_918], of: .service,
            "the checks let the log discard a part of a commit")
        + found(
            [18_298_702_667_452],
            "a replica had a version from an entry that the log had lost")
        + found(
            [153_771_244_441_749],
            "a wait for a receipt ended with another entry, of a lost history")
        + found(
            [124_197_931_304_426], of: .service, in: .poisoned,
            "nodes forgot refusals sooner than the checks expected")
        + found(
            [70_804_493_209_015],
            "the checks let a replica continue with a snapshot that the log had lost"
        )
        + found(
            [242_876_163_028_372],
            "the checks did not count a vote that arrived after its node had left")
        + found(
            [86_989_511_304_103, 86_989_511_304_259, 86_989_511_304_383], in: .standbys,
            "a log whose checkpoint could not be reached was mistaken for a damaged one")
        + found(
            [239_674_002_343_058], in: .standbys,
            "a log whose beginning was discarded while a standby read it was mistaken for a damaged one"
        )
        + found(
            [268_595_807_070_434], in: .standbys,
            "the checks let a program know of an entry that no sequencer knew to be in the log")
        + found(
            [70_896_772_580_409],
            "the checks did not know that a bridge may miss entries which the log has discarded")
        + found(
            [81_725_526_499_199],
            "a replica kept the effect of a skipped entry, from a snapshot that the sequencer had lost"
        )
        + found(
            [41_374_971_355_494], of: .service,
            "no snapshot was taken any more after the only voter had left")
        + found(
            [84_491_990_600_681], of: .service,
            "a replica missed a digest point that the log had discarded, and its vote counted what others had counted before it"
        )
        + found(
            [19_187_432_867_343],
            "a batch that its node sent again more rarely than a batch may wait for a lock waited for ever"
        )

    private static func found(
        _ seeds: [UInt64], of states: SampleStates = .journal, in world: SimulationWorld? = nil,
        _ cause: String
    ) -> [Regression] {
        seeds.map { Regression(seed: $0, states: states, world: world, cause: cause) }
    }
}
