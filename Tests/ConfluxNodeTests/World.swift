import ConfluxNode
import ConfluxSequencer
import Foundation
import Synchronization
import Testing

/// A sequencer on free ports with a log in memory, and any number of nodes, each with its own scope.
final class World: Sendable {
    let sequencer: Sequencer

    init(
        bind: String = "tcp://127.0.0.1:0",
        adjust: @escaping @Sendable (inout SequencerSettings) -> Void = { _ in }
    ) throws {
        var configuration = SequencerConfiguration(bind: bind, storage: .memory)
        configuration.adjust = adjust
        sequencer = try Sequencer.start(configuration)
    }

    func node(
        _ name: String? = nil, scope: Scope = Scope(),
        adjust: (inout NodeSettings) -> Void = { _ in }
    ) async throws -> Node {
        var settings = NodeSettings(name: name.flatMap { Name($0) })
        adjust(&settings)
        return try await Node.connect(to: sequencer.address, settings: settings, scope: scope)
    }
}

/// Runs a test's body with a world, and closes the world in any case.
func withWorld(
    adjust: @escaping @Sendable (inout SequencerSettings) -> Void = { _ in },
    _ body: (World) async throws -> Void
) async throws {
    let world = try World(adjust: adjust)
    do {
        try await body(world)
    } catch {
        await world.sequencer.stop()
        throw error
    }
    await world.sequencer.stop()
}

/// An address that can be bound again. It is a path, since another process may take a free port.
func withAddress(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("conflux-\(Identifier.random())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body("ipc://\(folder.path)/sequencer")
}

/// Waits for the first matching element, within the deadline.
func first<Elements: AsyncSequence & Sendable>(
    of elements: Elements, where isWanted: @escaping @Sendable (Elements.Element) -> Bool
) async throws -> Elements.Element where Elements.Element: Sendable {
    try await withDeadline {
        for try await element in elements where isWanted(element) { return element }
        throw Missing()
    }
}

/// Waits until the model of a store matches, within the deadline.
func wait<M: Model>(
    for store: ModelStore<M>, until isWanted: @escaping @Sendable (M) -> Bool
) async throws {
    let changes = store.changes
    if isWanted(store.value) { return }
    _ = try await first(of: changes) { isWanted($0.new) }
}

/// Runs work that must end before the deadline.
func withDeadline<Value: Sendable>(
    seconds: Double = 90, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let task = Task { try await work() }
    let timer = DispatchSource.makeTimerSource()
    timer.schedule(deadline: .now() + seconds)
    timer.setEventHandler { task.cancel() }
    timer.resume()
    defer { timer.cancel() }
    return try await task.value
}

struct Missing: Error {}

// MARK: States

final class TallyState: ReplicatedState {
    static let name = "tally"
    enum Action: Codable, Sendable, Equatable {
        case add(Int), fail
        /// Adds one, up to this count.
        case countOn(upTo: Int)
    }
    typealias Mutations = TallyMutations
    struct Snapshot: Codable, Sendable { var count: Int }

    let count = Variable(0)
    static var mutations: TallyMutations { TallyMutations() }
    var snapshot: Snapshot {
        get { Snapshot(count: count.value) }
        set { count.value = newValue.count }
    }
}

struct Refusal: Error, CustomStringConvertible {
    var description: String { "this tally does not fail" }
}

struct TallyMutations: ContextMutations {
    func check(
        action: TallyState.Action, state: TallyState, context: ActionContext
    ) throws {
        switch action {
        case .fail: throw Refusal()
        case .countOn(let most) where state.count.value >= most: throw Refusal()
        case .add, .countOn: break
        }
    }

    func commit(action: TallyState.Action, state: TallyState, context: ActionContext) {
        switch action {
        case .add(let amount): state.count.value += amount
        case .countOn: state.count.value += 1
        case .fail: break
        }
    }
}

extension Actions where State == TallyState {
    func add(_ amount: Int) { dispatch(action: .add(amount)) }
}

extension Computed where State == TallyState {
    var count: Int { state.count.value }
    var counts: Signal<Int> { state.count.signal }
}

struct Journal: Model {
    static let name = "journal"
    var lines: [String] = []
    var dice: [Int] = []
    enum Action: Codable, Sendable { case write(String), roll }

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .write("") = action { throw Refusal() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .write(let line): lines.append(line)
        case .roll:
            var random = context.random
            dice.append(Int.random(in: 1...1_000_000, using: &random))
        }
    }
}
