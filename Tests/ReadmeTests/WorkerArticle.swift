import ConfluxWorker

/// Is only compiled: it ends the process.
func work() async {
    await Worker.main("stock-worker", version: "2.1.0", states: [HostedState(Stock.self)])
}

/// Is only compiled, too.
func workAndOrder() async {
    await Worker.main("stock-worker", version: "2.1.0", states: [HostedState(Stock.self)]) { node in
        let stock = try await node.store(Stock.self)
        for await left in stock.changed(\.left).values where left < 10 {
            try await stock.dispatch(.add(amount: 100)).receipt()
        }
    }
}
