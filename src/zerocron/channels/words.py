"""The words of messages: one table for each language, all of the same shape, so that none can lack a word.

Owns text only; `zerocron.channels.wording` decides what is said. `{name}` and the like are filled once: a name that
looks like one stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zerocron.core.notice import EventKind


@dataclass(frozen=True, slots=True)
class Words:
    """One language.

    `titles`: of one, and of {count} of them. `reminders`: the same when it was told before. `leads`: a sentence that
    follows the reason; it is left out when a fact it names is not known. `labels`: of the facts.
    """

    titles: Mapping[EventKind, tuple[str, str]]
    reminders: Mapping[EventKind, str]
    leads: Mapping[EventKind, str]
    labels: Mapping[str, str]
    again: str
    times: str
    and_: str
    digest: str
    digest_rest: str
    more: tuple[str, str]
    open: str
    output: str
    footer: str
    day_unit: str
    decimal_mark: str
    colon: str


_K = EventKind

EN = Words(
    titles={
        _K.JOB_FAILED: ("{name} failed", "{name} failed {count} times in a row"),
        _K.JOB_RECOVERED: ("{name} works again", "{name} works again"),
        _K.JOB_DISABLED: ("{name} was disabled", "{name} was disabled"),
        _K.JOB_MISSED: ("{name} missed a run", "{name} missed {count} runs"),
        _K.JOB_SUCCEEDED: ("{name} succeeded", "{name} succeeded"),
        _K.JOB_LATE: ("{name} is late", "{name} is late"),
        _K.MONITOR_DOWN: ("{name} is down", "{name} is down"),
        _K.MONITOR_UP: ("{name} is up again", "{name} is up again"),
        _K.MONITOR_LATE: ("{name} is late", "{name} is late"),
        _K.CHANNEL_DISABLED: ("The channel {name} was switched off", "The channel {name} was switched off"),
        _K.OUTAGE: ("0cron could not take pings for a while", "0cron could not take pings for a while"),
        _K.TEST: ("The channel {name} works", "The channel {name} works"),
    },
    reminders={
        _K.JOB_FAILED: "{name} still fails",
        _K.MONITOR_DOWN: "{name} is still down",
        _K.MONITOR_LATE: "{name} is still late",
        _K.JOB_DISABLED: "{name} is still disabled",
    },
    leads={
        _K.JOB_FAILED: "",
        _K.JOB_RECOVERED: "It had failed for {duration}.",
        _K.JOB_DISABLED: "It will not run again until somebody resumes it.",
        _K.JOB_MISSED: "0cron could not run it at that time.",
        _K.JOB_SUCCEEDED: "",
        _K.JOB_LATE: "",
        _K.MONITOR_DOWN: "Nothing was heard for {duration}.",
        _K.MONITOR_UP: "It was down for {duration}.",
        _K.MONITOR_LATE: "The ping that was expected has not come yet.",
        _K.CHANNEL_DISABLED: "It gets no messages until somebody switches it on again.",
        _K.OUTAGE: "It lasted {duration}; silence during that time is counted against no monitor.",
        _K.TEST: "Somebody asked for this message; nothing has happened.",
    },
    labels={
        "since": "Since",
        "failing_since": "Failing since",
        "down_since": "Down since",
        "last_ping": "Last sign of life",
        "slot": "Scheduled for",
        "expected": "Expected",
        "at": "When",
        "count": "In a row",
        "missed": "Missed",
        "took": "Took",
        "next": "Next run",
        "next_ping": "Next ping expected",
        "schedule": "Schedule",
        "tags": "Tags",
    },
    again="You were told before; nothing has changed since.",
    times="{count} times",
    and_=" and ",
    digest="{count} events: {titles}",
    digest_rest="{count} more",
    more=("One more event is not shown.", "{count} more events are not shown."),
    open="Open in 0cron",
    output="Output",
    footer="Sent by 0cron, because this channel is told about it.",
    day_unit="d",
    decimal_mark=".",
    colon=": ",
)

FR = Words(
    titles={
        _K.JOB_FAILED: ("{name} a échoué", "{name} a échoué {count} fois de suite"),
        _K.JOB_RECOVERED: ("{name} fonctionne à nouveau", "{name} fonctionne à nouveau"),
        _K.JOB_DISABLED: ("{name} a été mis hors service", "{name} a été mis hors service"),
        _K.JOB_MISSED: ("{name} a manqué une exécution", "{name} a manqué {count} exécutions"),
        _K.JOB_SUCCEEDED: ("{name} a réussi", "{name} a réussi"),
        _K.JOB_LATE: ("{name} est en retard", "{name} est en retard"),
        _K.MONITOR_DOWN: ("{name} ne répond plus", "{name} ne répond plus"),
        _K.MONITOR_UP: ("{name} répond à nouveau", "{name} répond à nouveau"),
        _K.MONITOR_LATE: ("{name} est en retard", "{name} est en retard"),
        _K.CHANNEL_DISABLED: ("Le canal {name} a été coupé", "Le canal {name} a été coupé"),
        _K.OUTAGE: (
            "0cron n'a pas pu recevoir de signaux pendant un moment",
            "0cron n'a pas pu recevoir de signaux pendant un moment",
        ),
        _K.TEST: ("Le canal {name} fonctionne", "Le canal {name} fonctionne"),
    },
    reminders={
        _K.JOB_FAILED: "{name} échoue toujours",
        _K.MONITOR_DOWN: "{name} ne répond toujours pas",
        _K.MONITOR_LATE: "{name} est toujours en retard",
        _K.JOB_DISABLED: "{name} est toujours hors service",
    },
    leads={
        _K.JOB_FAILED: "",
        _K.JOB_RECOVERED: "Les échecs ont duré {duration}.",
        _K.JOB_DISABLED: "Plus aucune exécution n'aura lieu avant que quelqu'un ne le relance.",
        _K.JOB_MISSED: "0cron n'a pas pu l'exécuter à ce moment-là.",
        _K.JOB_SUCCEEDED: "",
        _K.JOB_LATE: "",
        _K.MONITOR_DOWN: "Aucun signe de vie depuis {duration}.",
        _K.MONITOR_UP: "La panne a duré {duration}.",
        _K.MONITOR_LATE: "Le signal attendu n'est pas encore arrivé.",
        _K.CHANNEL_DISABLED: "Plus aucun message n'y est envoyé avant que quelqu'un ne le remette en service.",
        _K.OUTAGE: "Cela a duré {duration} ; ce silence n'est reproché à aucune surveillance.",
        _K.TEST: "Quelqu'un a demandé ce message ; il ne s'est rien passé.",
    },
    labels={
        "since": "Depuis",
        "failing_since": "En échec depuis",
        "down_since": "En panne depuis",
        "last_ping": "Dernier signe de vie",
        "slot": "Prévu pour",
        "expected": "Attendu",
        "at": "Quand",
        "count": "De suite",
        "missed": "Manquées",
        "took": "Durée",
        "next": "Prochaine exécution",
        "next_ping": "Prochain signal attendu",
        "schedule": "Planification",
        "tags": "Étiquettes",
    },
    again="Ce message vous a déjà été envoyé ; rien n'a changé depuis.",
    times="{count} fois",
    and_=" et ",
    digest="{count} événements : {titles}",
    digest_rest="{count} de plus",
    more=("Un autre événement n'est pas affiché.", "{count} autres événements ne sont pas affichés."),
    open="Ouvrir dans 0cron",
    output="Sortie",
    footer="Envoyé par 0cron, car ce canal en est informé.",
    day_unit="j",
    decimal_mark=",",
    colon=" : ",
)

ES = Words(
    titles={
        _K.JOB_FAILED: ("{name} ha fallado", "{name} ha fallado {count} veces seguidas"),
        _K.JOB_RECOVERED: ("{name} vuelve a funcionar", "{name} vuelve a funcionar"),
        _K.JOB_DISABLED: ("{name} se ha desactivado", "{name} se ha desactivado"),
        _K.JOB_MISSED: ("{name} ha perdido una ejecución", "{name} ha perdido {count} ejecuciones"),
        _K.JOB_SUCCEEDED: ("{name} ha terminado bien", "{name} ha terminado bien"),
        _K.JOB_LATE: ("{name} va con retraso", "{name} va con retraso"),
        _K.MONITOR_DOWN: ("{name} no da señales", "{name} no da señales"),
        _K.MONITOR_UP: ("{name} vuelve a dar señales", "{name} vuelve a dar señales"),
        _K.MONITOR_LATE: ("{name} va con retraso", "{name} va con retraso"),
        _K.CHANNEL_DISABLED: ("El canal {name} se ha desactivado", "El canal {name} se ha desactivado"),
        _K.OUTAGE: (
            "0cron no pudo recibir señales durante un tiempo",
            "0cron no pudo recibir señales durante un tiempo",
        ),
        _K.TEST: ("El canal {name} funciona", "El canal {name} funciona"),
    },
    reminders={
        _K.JOB_FAILED: "{name} sigue fallando",
        _K.MONITOR_DOWN: "{name} sigue sin dar señales",
        _K.MONITOR_LATE: "{name} sigue con retraso",
        _K.JOB_DISABLED: "{name} sigue desactivado",
    },
    leads={
        _K.JOB_FAILED: "",
        _K.JOB_RECOVERED: "Estuvo fallando durante {duration}.",
        _K.JOB_DISABLED: "No volverá a ejecutarse hasta que alguien lo reanude.",
        _K.JOB_MISSED: "0cron no pudo ejecutarlo en ese momento.",
        _K.JOB_SUCCEEDED: "",
        _K.JOB_LATE: "",
        _K.MONITOR_DOWN: "No ha dado señales durante {duration}.",
        _K.MONITOR_UP: "Estuvo caído durante {duration}.",
        _K.MONITOR_LATE: "La señal esperada aún no ha llegado.",
        _K.CHANNEL_DISABLED: "No recibirá mensajes hasta que alguien lo vuelva a activar.",
        _K.OUTAGE: "Duró {duration}; ese silencio no cuenta contra ningún monitor.",
        _K.TEST: "Alguien pidió este mensaje; no ha ocurrido nada.",
    },
    labels={
        "since": "Desde",
        "failing_since": "Fallando desde",
        "down_since": "Caído desde",
        "last_ping": "Última señal",
        "slot": "Previsto para",
        "expected": "Esperado",
        "at": "Cuándo",
        "count": "Seguidas",
        "missed": "Perdidas",
        "took": "Duración",
        "next": "Próxima ejecución",
        "next_ping": "Próxima señal esperada",
        "schedule": "Programación",
        "tags": "Etiquetas",
    },
    again="Ya se le avisó; nada ha cambiado desde entonces.",
    times="{count} veces",
    and_=" y ",
    digest="{count} eventos: {titles}",
    digest_rest="{count} más",
    more=("No se muestra otro evento.", "No se muestran otros {count} eventos."),
    open="Abrir en 0cron",
    output="Salida",
    footer="Enviado por 0cron, porque este canal recibe estos avisos.",
    day_unit="d",
    decimal_mark=",",
    colon=": ",
)

LANGUAGES: Mapping[str, Words] = {"en": EN, "fr": FR, "es": ES}
