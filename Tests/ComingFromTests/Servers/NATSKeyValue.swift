import ConfluxNode
import Testing

enum FromNATSKeyValue {
    struct Settings: Model, Equatable {
        static let name = "settings"
        var values: [String: String] = [:]

        enum Action: Codable, Sendable, Equatable {
            case put(key: String, value: String)
            case create(key: String, value: String)
            case delete(key: String)
        }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .create(let key, _) = action, values[key] != nil { throw KeyExists(key: key) }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .put(let key, let value), .create(let key, let value): values[key] = value
            case .delete(let key): values[key] = nil
            }
        }
    }

    struct KeyExists: Error, Equatable { let key: String }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromNATSKeyValue {
    typealias Settings = FromNATSKeyValue.Settings

    @Test func `put, get, create and update`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let settings = try await node.store(Settings.self)
            try await settings.dispatch(.put(key: "theme", value: "dark")).receipt()
            #expect(settings.values["theme"] == "dark")

            await #expect(throws: DispatchError.self) {
                try await settings.dispatch(.create(key: "theme", value: "light")).receipt()
            }

            let version = settings.version
            try await settings.dispatch(
                .put(key: "theme", value: "light"), ifUnchangedSince: version
            ).receipt()
            await #expect(throws: DispatchError.self) {
                try await settings.dispatch(
                    .delete(key: "theme"), ifUnchangedSince: version
                ).receipt()
            }
            #expect(settings.values["theme"] == "light")
        }
    }

    @Test func `a watcher gets the present value and each later one`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let settings = try await node.store(Settings.self)
            try await settings.dispatch(.put(key: "theme", value: "dark")).receipt()

            let themes = settings.changed(\.values["theme"]).values
            async let seen: [String?] = {
                var seen: [String?] = []
                for await theme in themes {
                    seen.append(theme)
                    if theme == "light" { break }
                }
                return seen
            }()
            try await settings.dispatch(.put(key: "theme", value: "light")).receipt()
            #expect(await seen.last == "light")
        }
    }
}
