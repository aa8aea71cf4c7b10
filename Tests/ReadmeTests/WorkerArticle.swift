import ConfluxWorker

/// Is only compiled: it ends the process.
func work() async {
    await Worker.main("stock-worker", version: "2.1.0", states: [HostedState(Stock.self)])
}
