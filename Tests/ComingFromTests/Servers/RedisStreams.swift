import ConfluxNode
import Testing

enum FromRedisStreams {
    struct Temperatures: Model, Equatable {
        static let name = "temperatures"
        var newest: [String: Double] = [:]

        enum Action: Codable, Sendable, Equatable { case measured(room: String, degrees: Double) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .measured(let room, let degrees) = action { newest[room] = degrees }
        }
    }

    struct Jobs: Model, Equatable {
        static let name = "jobs"
        var open: [String] = []

        enum Action: Codable, Sendable, Equatable {
            case add(job: String)
            case done(job: String)
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .add(let job): open.append(job)
            case .done(let job): open.removeAll { $0 == job }
            }
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromRedisStreams {
    typealias Temperatures = FromRedisStreams.Temperatures
    typealias Jobs = FromRedisStreams.Jobs

    @Test func `a reader in another process has what was appended`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let reader = try await cluster.connect()
            let store = try await reader.store(Temperatures.self)

            let temperatures = try node.actions(of: Temperatures.self)
            let receipt = try await temperatures.dispatch(
                .measured(room: "attic", degrees: 31.5)
            ).receipt()

            try await reader.wait(for: receipt)
            #expect(store.newest["attic"] == 31.5)
            await reader.close()
        }
    }

    @Test func `one process at a time does the jobs`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let jobs = try await node.store(Jobs.self)
            try await jobs.dispatch(.add(job: "resize")).receipt()

            try await node.withLease("resizer") { lease in
                for job in jobs.open {
                    try await jobs.dispatch(.done(job: job), under: lease).receipt()
                }
            }
            #expect(jobs.open.isEmpty)
        }
    }
}
