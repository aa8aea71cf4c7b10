import ChatModel
import ConfluxWorker

await Worker.main("chat-worker", version: "1.0.0", states: [HostedState(Room.self)])
