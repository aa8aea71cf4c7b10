import ConfluxWorker
import PollModel

await Worker.main("poll-worker", version: "1.0.0", states: [HostedState(Poll.self)])
