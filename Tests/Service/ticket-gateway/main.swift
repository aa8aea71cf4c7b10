import ConfluxGateway
import TicketModel

await Gateway.main(
    "ticket-gateway", version: "1.0.0", states: [HostedState(Hall.self), HostedState(Sales.self)])
