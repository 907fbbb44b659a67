"""The handler table: which function answers each request, and how it is run."""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from scout.broker.delivery import pause, terminals
from scout.broker.imports import requests as imports
from scout.broker.mesh import requests as mesh
from scout.broker.mesh.moves import request as moving
from scout.broker.operations import (
    access,
    agents,
    allowances,
    asks,
    attention,
    channels,
    decisions,
    endpoints,
    enrolment,
    flights,
    inbox,
    insight,
    overview,
    publication,
    questions,
    talk,
    waits,
    why,
    work,
)
from scout.broker.past import archives, moments
from scout.broker.past import lists as past_lists
from scout.broker.past import records as past_records
from scout.broker.past import usage as past_usage
from scout.broker.people import bindings, connectors, schedules, tasks, users
from scout.broker.sessions import control, observation, runtimes
from scout.broker.tree import (
    finish,
    hook_reports,
    past_view,
    projects,
    reconcile,
    reservations,
    revival,
    scan,
    spawn,
    view,
)
from scout.model.moment import Moment
from scout.protocol import access as access_requests
from scout.protocol import agents as agent_requests
from scout.protocol import allowances as allowance_requests
from scout.protocol import asks as ask_requests
from scout.protocol import attention as attention_requests
from scout.protocol import channels as channel_requests
from scout.protocol import endpoints as endpoint_requests
from scout.protocol import enrolment as enrolment_requests
from scout.protocol import inbox as inbox_requests
from scout.protocol import insight as insight_requests
from scout.protocol import log as log_requests
from scout.protocol import mesh as mesh_requests
from scout.protocol import observation as observation_requests
from scout.protocol import overview as overview_requests
from scout.protocol import questions as question_requests
from scout.protocol import reservations as reservation_requests
from scout.protocol import sessions as session_requests
from scout.protocol import talk as talk_requests
from scout.protocol import work as work_requests
from scout.protocol.imports import requests as import_requests
from scout.protocol.people import bindings as binding_requests
from scout.protocol.people import connectors as connector_requests
from scout.protocol.people import schedules as schedule_requests
from scout.protocol.people import tasks as task_requests
from scout.protocol.people import users as user_requests
from scout.protocol.request import Request
from scout.protocol.tree import finish as finish_requests
from scout.protocol.tree import spawn as tree_requests
from scout.protocol.tree import view as tree_view_requests


class Manner(Enum):
    """How a handler is run.

    READ: `function(tx, request)` on a reader thread.
    WRITE: `function(tx, request)` in one transaction, once for each idempotency key.
    DISK: `function(tx, request)` in a thread, because it touches files; it only looks at the store.
    ASYNC: `await function(call, request)` on the event loop; it opens its own transactions.
    """

    READ = auto()
    WRITE = auto()
    DISK = auto()
    ASYNC = auto()


READ, WRITE, DISK, ASYNC = Manner


class Handler(NamedTuple):
    """`wait` answers a request with `wait` seconds, `past` one with a moment in `at`.

    `after_probe`: the harnesses must have been probed.
    """

    function: Callable[[Any, Any], Any]
    manner: Manner
    wait: Callable[[Any, Any], Any] | None = None
    after_probe: bool = False
    past: Callable[[Any, Any, Moment], Any] | None = None


HANDLERS: Mapping[type[Request[Any]], Handler] = {
    # -- overview
    overview_requests.ShowStatus: Handler(overview.show_status, READ),
    overview_requests.ShowNow: Handler(overview.show_now, READ, past=past_records.show_now),
    overview_requests.MarkLooked: Handler(overview.mark_seen, WRITE),
    overview_requests.PauseScout: Handler(pause.pause, WRITE),
    overview_requests.ResumeScout: Handler(pause.resume, WRITE),
    overview_requests.ReloadSettings: Handler(overview.reload_settings, DISK),
    overview_requests.ListNodes: Handler(overview.list_nodes, READ),
    log_requests.ReadLog: Handler(overview.read_log, READ),
    overview_requests.CreateArchive: Handler(archives.create_archive, ASYNC),
    overview_requests.ListArchives: Handler(archives.list_archives, READ),
    overview_requests.PurgeArchives: Handler(archives.purge_archives, ASYNC),
    overview_requests.ShowActivity: Handler(moments.show_activity, ASYNC),
    # -- agents
    agent_requests.WhoAmI: Handler(agents.identify, ASYNC),
    agent_requests.RegisterAgent: Handler(agents.register, WRITE),
    agent_requests.Who: Handler(agents.list_agents, READ, past=past_lists.list_agents),
    agent_requests.ShowAgent: Handler(agents.show, READ, past=past_records.show_agent),
    agent_requests.ConfigureAgent: Handler(agents.configure, WRITE),
    agent_requests.RetireAgent: Handler(revival.retire_agent, ASYNC),
    agent_requests.ReviveAgent: Handler(revival.revive_agent, ASYNC),
    agent_requests.PublishAgent: Handler(publication.publish, WRITE, after_probe=True),
    agent_requests.UnpublishAgent: Handler(publication.unpublish, WRITE),
    agent_requests.ShowPublication: Handler(publication.show_publication, READ),
    log_requests.ReadFeed: Handler(overview.read_feed, READ),
    agent_requests.Resolve: Handler(agents.resolve_address, READ),
    agent_requests.Parse: Handler(agents.parse_addresses, READ),
    endpoint_requests.RegisterEndpoint: Handler(endpoints.register_endpoint, WRITE),
    endpoint_requests.Heartbeat: Handler(endpoints.receive_heartbeat, ASYNC),
    endpoint_requests.UpdateEndpoint: Handler(endpoints.update, WRITE),
    endpoint_requests.RemoveEndpoint: Handler(endpoints.remove_endpoint, WRITE),
    agent_requests.MoveProject: Handler(agents.move_project, WRITE),
    # -- sessions
    session_requests.ListSessions: Handler(control.list_sessions, ASYNC, past=past_lists.list_sessions),
    session_requests.CloseSession: Handler(terminals.close_session, WRITE),
    session_requests.GetSession: Handler(control.show_session, ASYNC),
    session_requests.StartSession: Handler(control.start_session, ASYNC),
    session_requests.ForkSession: Handler(control.fork_session, ASYNC),
    session_requests.AttachSession: Handler(control.attach_session, ASYNC),
    session_requests.StopSession: Handler(control.stop_session, ASYNC),
    session_requests.OpenSession: Handler(control.open_in_terminal, ASYNC),
    session_requests.Wake: Handler(control.wake_agent, ASYNC),
    session_requests.Interrupt: Handler(control.interrupt_agent, ASYNC),
    session_requests.ListRuntimes: Handler(runtimes.list_runtimes, ASYNC),
    session_requests.CheckRuntime: Handler(runtimes.check_runtime, ASYNC),
    session_requests.StopCheck: Handler(runtimes.stop_check, ASYNC),
    # -- trees
    tree_requests.SpawnAgents: Handler(spawn.spawn_agents, ASYNC, after_probe=True),
    tree_requests.ListProjects: Handler(projects.list_projects, READ),
    tree_requests.SetProject: Handler(projects.set_project, DISK),
    finish_requests.FinishAgent: Handler(finish.finish_agent, ASYNC, after_probe=True),
    finish_requests.FinishDone: Handler(finish.finish_done, ASYNC, after_probe=True),
    # -- enrolment
    enrolment_requests.Enrol: Handler(enrolment.enrol_session, WRITE),
    enrolment_requests.ReportHook: Handler(hook_reports.report_hook, ASYNC),
    # -- talk
    talk_requests.Send: Handler(talk.send, WRITE, after_probe=True),
    talk_requests.Reply: Handler(flights.reply, WRITE),
    talk_requests.GetMessage: Handler(talk.get_message, READ),
    talk_requests.ListMessages: Handler(talk.list_messages, READ),
    talk_requests.RedactMessage: Handler(archives.redact_message, ASYNC),
    talk_requests.Latest: Handler(talk.list_latest, READ),
    talk_requests.Search: Handler(overview.search, READ),
    talk_requests.PutBlob: Handler(talk.put_blob, ASYNC),
    talk_requests.GetBlob: Handler(talk.get_blob, READ),
    # -- inbox
    inbox_requests.ListInbox: Handler(inbox.list_inbox, READ),
    inbox_requests.ClaimInbox: Handler(inbox.claim, WRITE, wait=waits.wait_for_mail),
    inbox_requests.AckInbox: Handler(inbox.acknowledge, WRITE),
    inbox_requests.NackInbox: Handler(inbox.give_back, WRITE),
    inbox_requests.RenewInbox: Handler(inbox.hold_longer, WRITE),
    inbox_requests.ListDeliveries: Handler(inbox.list_deliveries, READ),
    inbox_requests.GetDelivery: Handler(inbox.get_delivery, READ),
    # -- channels
    channel_requests.ListConversations: Handler(channels.list_conversations, READ),
    channel_requests.GetConversation: Handler(channels.get_conversation, READ),
    channel_requests.MarkRead: Handler(inbox.read_conversation, WRITE),
    channel_requests.CreateChannel: Handler(channels.create, WRITE),
    channel_requests.ListChannels: Handler(channels.list_channels, READ),
    channel_requests.ShowChannel: Handler(channels.show_channel, READ),
    channel_requests.JoinChannel: Handler(channels.join_channel, WRITE),
    channel_requests.LeaveChannel: Handler(channels.leave_channel, WRITE),
    channel_requests.ChannelPolicy: Handler(channels.set_channel_policy, WRITE),
    channel_requests.ArchiveChannel: Handler(channels.archive, WRITE),
    # -- asks
    ask_requests.MakeAsk: Handler(asks.make_ask, WRITE, wait=waits.wait_for_result, after_probe=True),
    ask_requests.GetAsk: Handler(flights.get_ask, READ),
    ask_requests.ListFlights: Handler(flights.list_flights, READ, past=past_lists.list_flights),
    ask_requests.GetFlight: Handler(
        flights.get, READ, wait=waits.wait_for_flight, past=past_records.get_flight
    ),
    ask_requests.StartFlight: Handler(flights.start, WRITE),
    ask_requests.BlockFlight: Handler(flights.block, WRITE),
    ask_requests.ResumeFlight: Handler(flights.resume, WRITE),
    ask_requests.CompleteFlight: Handler(flights.complete, WRITE),
    ask_requests.FailFlight: Handler(flights.fail, WRITE),
    ask_requests.CancelFlight: Handler(flights.cancel, WRITE),
    ask_requests.RetryFlight: Handler(asks.retry_ask, WRITE),
    # -- observation
    observation_requests.ShowTopology: Handler(observation.show_topology, ASYNC),
    observation_requests.TailSession: Handler(observation.tail_session, ASYNC),
    observation_requests.ShowDiff: Handler(observation.show_diff, ASYNC),
    # -- questions
    question_requests.CreateQuestion: Handler(questions.create, WRITE, wait=waits.wait_for_answer),
    question_requests.ListQuestions: Handler(questions.list_questions, READ, past=past_lists.list_questions),
    question_requests.GetQuestion: Handler(
        questions.get, READ, wait=waits.wait_for_answer, past=past_records.get_question
    ),
    question_requests.AnswerQuestion: Handler(questions.answer, WRITE),
    question_requests.DeclineQuestion: Handler(questions.decline, WRITE),
    question_requests.CloseQuestion: Handler(questions.close, WRITE),
    question_requests.ReopenQuestion: Handler(questions.reopen, WRITE),
    # -- work
    work_requests.CreateWork: Handler(work.create, WRITE),
    work_requests.ListWork: Handler(work.list_work, READ, past=past_lists.list_work),
    work_requests.GetWork: Handler(work.get, READ, past=past_records.get_work),
    work_requests.StartWork: Handler(work.start, WRITE),
    work_requests.ProgressWork: Handler(work.report_progress, WRITE),
    work_requests.WaitWork: Handler(work.wait, WRITE),
    work_requests.ResumeWork: Handler(work.resume, WRITE),
    work_requests.SubmitWork: Handler(work.submit, WRITE),
    work_requests.AcceptWork: Handler(work.accept, WRITE),
    work_requests.ReopenWork: Handler(work.reopen, WRITE),
    work_requests.HandOverWork: Handler(work.hand_over, WRITE),
    work_requests.CancelWork: Handler(work.cancel, WRITE),
    work_requests.UpdateWork: Handler(work.update, WRITE),
    work_requests.RelateWork: Handler(work.relate, WRITE),
    # -- attention
    attention_requests.ListAttention: Handler(attention.list_attention, READ, past=past_lists.list_attention),
    attention_requests.GetAttention: Handler(
        attention.get, READ, wait=waits.wait_for_decision, past=past_records.get_attention
    ),
    attention_requests.RaiseAttention: Handler(attention.raise_item, WRITE, wait=waits.wait_for_decision),
    attention_requests.Need: Handler(attention.raise_need, WRITE, wait=waits.wait_for_decision),
    attention_requests.Consult: Handler(attention.raise_consult, WRITE),
    attention_requests.Notify: Handler(attention.raise_notice, WRITE),
    attention_requests.AnswerAttention: Handler(decisions.answer, WRITE),
    attention_requests.ApproveAttention: Handler(decisions.approve, WRITE),
    attention_requests.DenyAttention: Handler(decisions.deny, WRITE),
    attention_requests.DismissAttention: Handler(decisions.dismiss, WRITE),
    attention_requests.DecideAttention: Handler(decisions.decide_several, WRITE),
    # -- allowances
    allowance_requests.AddAllowance: Handler(allowances.add, WRITE),
    allowance_requests.GetAllowance: Handler(allowances.get, READ),
    allowance_requests.ListAllowances: Handler(allowances.list_allowances, READ),
    allowance_requests.RevokeAllowance: Handler(allowances.revoke, WRITE),
    # -- reservations
    reservation_requests.AddReservation: Handler(reservations.add, ASYNC),
    reservation_requests.ListReservations: Handler(reservations.list_reservations, READ),
    reservation_requests.GetReservation: Handler(reservations.get, READ),
    reservation_requests.ReleaseReservation: Handler(reservations.release, WRITE),
    reservation_requests.CheckEdits: Handler(reservations.check, ASYNC),
    # -- schedules
    schedule_requests.AddSchedule: Handler(schedules.add_schedule, ASYNC),
    schedule_requests.UpdateSchedule: Handler(schedules.update_schedule, ASYNC),
    schedule_requests.ListSchedules: Handler(schedules.list_schedules, READ),
    schedule_requests.GetSchedule: Handler(schedules.show_schedule, READ),
    schedule_requests.RunSchedule: Handler(schedules.run_schedule, ASYNC, after_probe=True),
    schedule_requests.PauseSchedule: Handler(schedules.pause, WRITE),
    schedule_requests.ResumeSchedule: Handler(schedules.resume, ASYNC),
    schedule_requests.RemoveSchedule: Handler(schedules.remove_schedule, WRITE),
    schedule_requests.ReadScheduleLog: Handler(schedules.list_runs, READ),
    # -- tasks
    task_requests.CreateTask: Handler(tasks.create_task, WRITE, wait=waits.wait_for_result, after_probe=True),
    task_requests.ListTasks: Handler(tasks.list_tasks, READ),
    task_requests.GetTask: Handler(tasks.show_task, READ),
    # -- insight
    insight_requests.Why: Handler(why.explain_record, READ),
    insight_requests.ShowBrief: Handler(insight.show_brief, ASYNC),
    insight_requests.ShowUsage: Handler(insight.show_usage, READ, past=past_usage.show_usage),
    insight_requests.ReportUsage: Handler(insight.report_usage, WRITE),
    # -- trees
    tree_view_requests.ShowTree: Handler(view.show_tree, ASYNC, past=past_view.show_tree),
    tree_view_requests.ScanTree: Handler(scan.scan_tree, ASYNC),
    tree_view_requests.ReconcileTree: Handler(reconcile.reconcile_tree, ASYNC),
    # -- imports
    import_requests.ImportRecords: Handler(imports.import_records, WRITE),
    # -- mesh
    agent_requests.MoveAgent: Handler(moving.move_agent, ASYNC),
    mesh_requests.StartMesh: Handler(mesh.start_mesh, ASYNC),
    mesh_requests.StopMesh: Handler(mesh.stop_mesh, ASYNC),
    mesh_requests.ShowMesh: Handler(mesh.show_mesh, ASYNC),
    mesh_requests.ListMeshNodes: Handler(mesh.list_nodes, ASYNC),
    mesh_requests.InviteNode: Handler(mesh.invite_node, ASYNC),
    mesh_requests.JoinMesh: Handler(mesh.join_mesh, ASYNC),
    mesh_requests.RemoveNode: Handler(mesh.remove_node, ASYNC),
    mesh_requests.RenameNode: Handler(mesh.rename_node, ASYNC),
    mesh_requests.RotateLogin: Handler(mesh.rotate_login, ASYNC),
    mesh_requests.LeaveMesh: Handler(mesh.leave_mesh, ASYNC),
    mesh_requests.ShareAttention: Handler(mesh.share_attention, ASYNC),
    # -- connectors
    connector_requests.AddConnector: Handler(connectors.add_connector, ASYNC),
    connector_requests.ListConnectors: Handler(connectors.list_connectors, ASYNC),
    connector_requests.ShowConnector: Handler(connectors.show_connector, ASYNC),
    connector_requests.ProveConnector: Handler(connectors.prove_connector, ASYNC),
    connector_requests.RemoveConnector: Handler(connectors.remove_connector, ASYNC),
    connector_requests.PostToUser: Handler(connectors.post_to_user, WRITE),
    connector_requests.ListPosts: Handler(connectors.list_posts, READ),
    # -- access
    access_requests.SetAlias: Handler(access.set_alias, WRITE),
    access_requests.ListAliases: Handler(access.list_aliases, READ),
    access_requests.ShowAlias: Handler(access.show_alias, READ),
    access_requests.RemoveAlias: Handler(access.remove_alias, WRITE),
    access_requests.RepairAlias: Handler(access.repair_alias, WRITE),
    access_requests.CreateCard: Handler(access.create_card, WRITE),
    access_requests.ListCards: Handler(access.list_cards, READ),
    access_requests.ShowCard: Handler(access.show_card, READ),
    access_requests.RevokeCard: Handler(access.revoke_card, WRITE),
    access_requests.OpenWeb: Handler(access.create_web_link, WRITE),
    access_requests.CreateToken: Handler(access.create_token, WRITE),
    access_requests.ListTokens: Handler(access.list_tokens, READ),
    access_requests.RevokeToken: Handler(access.revoke_token, WRITE),
    access_requests.RotateToken: Handler(access.rotate_token, WRITE),
    access_requests.AddGrant: Handler(access.add_grant, WRITE),
    access_requests.ListGrants: Handler(access.list_grants, READ),
    access_requests.RevokeGrant: Handler(access.revoke_grant, WRITE),
    # -- people
    user_requests.AddUser: Handler(users.add_user, WRITE),
    user_requests.ListUsers: Handler(users.list_users, READ),
    user_requests.ShowUser: Handler(users.show_user, READ),
    user_requests.RenameUser: Handler(users.rename, WRITE),
    user_requests.LinkUser: Handler(users.link, WRITE),
    user_requests.UnlinkUser: Handler(users.unlink, WRITE),
    user_requests.SetQuietHours: Handler(users.set_quiet_hours, ASYNC),
    user_requests.ShowTarget: Handler(users.show_target, READ),
    user_requests.RetireUser: Handler(users.retire, WRITE),
    user_requests.ReviveUser: Handler(users.revive, WRITE),
    user_requests.ListKeys: Handler(users.list_keys, READ),
    user_requests.ShowKey: Handler(users.show_key, READ),
    binding_requests.AddBinding: Handler(bindings.add, WRITE),
    binding_requests.ListBindings: Handler(bindings.list_bindings, READ),
    binding_requests.ShowBinding: Handler(bindings.show, READ),
    binding_requests.CloseBinding: Handler(bindings.close, WRITE),
    binding_requests.ReopenBinding: Handler(bindings.reopen, WRITE),
}
