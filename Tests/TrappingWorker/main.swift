import ConfluxWorker

await Worker.main("trapping-worker", states: [HostedState(Mine.self), HostedState(Tally.self)])
