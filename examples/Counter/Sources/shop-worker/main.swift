import ConfluxWorker
import Shop

await Worker.main(
    "shop-worker", version: "1.0.0",
    states: [HostedState(VisitState.self), HostedState(Stock.self)])
