import ConfluxGateway

/// Is only compiled: it ends the process.
func serve() async {
    await Gateway.main("stock-gateway", version: "2.1.0", states: [HostedState(Stock.self)])
}
