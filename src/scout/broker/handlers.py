"""Which function answers which request. Those that write run in a transaction, the others on a reader."""

from collections.abc import Callable, Mapping
from typing import Any

from scout.broker.delivery import pause, terminals
from scout.broker.operations import (
    addresses,
    agents,
    allowances,
    asks,
    attention,
    briefs,
    decisions,
    endpoints,
    enrolment,
    flights,
    history,
    hooks,
    inbox,
    live_settings,
    overview,
    questions,
    usage,
    why,
    work,
)
from scout.broker.operations import channels as channel_operations
from scout.broker.routing import attachments, conversations, credentials, messages, names, registration
from scout.broker.sessions import records
from scout.broker.transaction.transaction import Transaction
from scout.protocol import access, channels, talk
from scout.protocol import agents as who
from scout.protocol import allowances as standing
from scout.protocol import asks as does
from scout.protocol import attention as needs
from scout.protocol import enrolment as hosts
from scout.protocol import inbox as box
from scout.protocol import insight as tells
from scout.protocol import overview as whole
from scout.protocol import questions as wants
from scout.protocol import sessions as runs
from scout.protocol import work as owns
from scout.protocol.request import Request

Handler = Callable[[Transaction, Any], Any]

HANDLERS: Mapping[type[Request[Any]], Handler] = {
    whole.ShowStatus: overview.status,
    whole.ShowNow: overview.now,
    whole.MarkLooked: overview.mark_seen,
    whole.PauseScout: pause.pause,
    whole.ResumeScout: pause.resume,
    whole.ReloadSettings: live_settings.reload,
    whole.ListNodes: overview.list_nodes,
    whole.ReadLog: overview.log,
    who.WhoAmI: agents.who_am_i,
    who.RegisterAgent: registration.register,
    who.Who: agents.who,
    who.ShowAgent: agents.show,
    who.ConfigureAgent: agents.configure,
    who.RetireAgent: agents.retire,
    who.ReviveAgent: agents.revive,
    who.ReadFeed: overview.read_feed,
    who.Resolve: agents.resolve_address,
    who.Parse: addresses.parse,
    who.RegisterEndpoint: endpoints.register_endpoint,
    who.Heartbeat: endpoints.heartbeat,
    who.UpdateEndpoint: endpoints.update,
    who.RemoveEndpoint: endpoints.remove_endpoint,
    runs.ListSessions: records.list_sessions,
    runs.CloseSession: terminals.close,
    hosts.Enrol: enrolment.enrol,
    hosts.ReportHook: hooks.report,
    who.MoveProject: agents.move_project,
    talk.Send: messages.send,
    talk.Reply: flights.reply,
    talk.GetMessage: history.get,
    talk.ListMessages: history.list_messages,
    talk.RedactMessage: history.redact_message,
    box.ListInbox: inbox.list_inbox,
    box.ClaimInbox: inbox.claim,
    box.AckInbox: inbox.acknowledge,
    box.NackInbox: inbox.give_back,
    box.RenewInbox: inbox.hold_longer,
    box.ListDeliveries: inbox.list_deliveries,
    box.GetDelivery: inbox.get_delivery,
    channels.ListConversations: conversations.list_conversations,
    channels.GetConversation: conversations.get,
    channels.MarkRead: inbox.read_conversation,
    channels.CreateChannel: channel_operations.create,
    channels.ListChannels: channel_operations.list_channels,
    channels.ShowChannel: channel_operations.show_channel,
    channels.JoinChannel: channel_operations.join_channel,
    channels.LeaveChannel: channel_operations.leave_channel,
    channels.ChannelPolicy: channel_operations.policy,
    channels.ArchiveChannel: channel_operations.archive,
    talk.Latest: conversations.latest,
    talk.Search: overview.search,
    talk.PutBlob: attachments.put_blob,
    talk.GetBlob: attachments.get_blob,
    does.MakeAsk: asks.make,
    does.GetAsk: flights.get_ask,
    does.ListFlights: flights.list_flights,
    does.GetFlight: flights.get,
    does.StartFlight: flights.start,
    does.BlockFlight: flights.block,
    does.ResumeFlight: flights.resume,
    does.CompleteFlight: flights.complete,
    does.FailFlight: flights.fail,
    does.CancelFlight: flights.cancel,
    does.RetryFlight: asks.retry,
    wants.CreateQuestion: questions.create,
    wants.ListQuestions: questions.list_questions,
    wants.GetQuestion: questions.get,
    wants.AnswerQuestion: questions.answer,
    wants.DeclineQuestion: questions.decline,
    wants.CloseQuestion: questions.close,
    wants.ReopenQuestion: questions.reopen,
    owns.CreateWork: work.create,
    owns.ListWork: work.list_work,
    owns.GetWork: work.get,
    owns.StartWork: work.start,
    owns.ProgressWork: work.progress,
    owns.WaitWork: work.wait,
    owns.ResumeWork: work.resume,
    owns.SubmitWork: work.submit,
    owns.AcceptWork: work.accept,
    owns.ReopenWork: work.reopen,
    owns.HandOverWork: work.hand_over,
    owns.CancelWork: work.cancel,
    owns.UpdateWork: work.update,
    owns.RelateWork: work.relate,
    needs.ListAttention: attention.list_attention,
    needs.GetAttention: attention.get,
    needs.RaiseAttention: attention.raise_item,
    needs.Need: attention.need,
    needs.Consult: attention.consult,
    needs.Notify: attention.notify,
    needs.AnswerAttention: decisions.answer,
    needs.ApproveAttention: decisions.approve,
    needs.DenyAttention: decisions.deny,
    needs.DismissAttention: decisions.dismiss,
    needs.DecideAttention: decisions.decide_several,
    standing.AddAllowance: allowances.add,
    standing.GetAllowance: allowances.get,
    standing.ListAllowances: allowances.list_allowances,
    standing.RevokeAllowance: allowances.revoke,
    tells.Why: why.why,
    tells.ShowBrief: briefs.brief,
    tells.ShowUsage: usage.show,
    tells.ReportUsage: usage.report,
    access.SetAlias: names.set_alias,
    access.ListAliases: names.list_aliases,
    access.ShowAlias: names.show_alias,
    access.RemoveAlias: names.remove,
    access.RepairAlias: names.repair,
    access.CreateCard: names.create_card,
    access.ListCards: names.list_cards,
    access.ShowCard: names.show_card,
    access.RevokeCard: names.revoke,
    access.CreateToken: credentials.create_token,
    access.ListTokens: credentials.list_tokens,
    access.RevokeToken: credentials.revoke_token_of,
    access.RotateToken: credentials.rotate_token,
    access.AddGrant: credentials.add_grant,
    access.ListGrants: credentials.list_grants,
    access.RevokeGrant: credentials.revoke_grant,
}


def config_of(request: Request[Any]) -> tuple[str, Mapping[str, Any]]:
    """An agent's settings that a request gives, and its field that holds them."""
    match request:
        case who.RegisterAgent() | who.ConfigureAgent():
            return "config", request.config
        case talk.Send():
            return "create", request.create or {}
        case _:
            return "", {}


def directory_of(request: Request[Any]) -> str | None:
    """The directory that a request names, to be looked at before its transaction."""
    match request:
        case who.RegisterAgent() | who.Who():
            return request.project_root
        case who.ConfigureAgent():
            return request.working_dir
        case who.MoveProject():
            return request.new
        case does.MakeAsk():
            return request.project_path
        case standing.AddAllowance():
            return request.project
        case hosts.Enrol() | runs.StartSession() | runs.AttachSession():
            return request.cwd
        case _:
            return None
