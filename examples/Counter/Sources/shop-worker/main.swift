import ConfluxWorker
import Shop

await Worker.main("shop-worker", states: [HostedState(VisitState.self), HostedState(Stock.self)])
