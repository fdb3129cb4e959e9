"""What core/schedule has to say to a person, in English, French and Spanish.

Owns every sentence: a warning, a refusal, what a change of the clocks does. The rest of the package holds a `Remark`,
which is a key and what fills its places, and never words. A language without a table is spoken to in English. (What
plain language has to say is in the tables of core/phrases.)

In a template, {0} {1} are the remark's values in order; {unit}, {units} and {whole} are its unit in the singular, in
the plural, and the time that a field of that unit covers (a minute field covers an hour).
"""

# ruff: noqa: E501  (a sentence is not cut)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from zerocron.core.errors import Invalid

Unit = Literal["second", "minute", "hour", "day of month", "month", "day of week", "year"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to say. A value that is itself a remark is said in the same language."""

    key: str
    values: tuple[str | Remark, ...] = ()
    unit: Unit | None = None


class Refusal(Invalid):
    """An Invalid that can be said in any language; in English where nobody asks for another."""

    def __init__(self, remark: Remark, *, field: str = "schedule", suggestions: Sequence[str] = ()) -> None:
        super().__init__(say(remark), field=field, suggestions=suggestions)
        self.field = field
        self.remark = remark


def refusal(
    key: str, *values: str | Remark, unit: Unit | None = None, field: str = "schedule", suggestions: Sequence[str] = ()
) -> Refusal:
    """The Refusal that this sentence is."""
    return Refusal(Remark(key, values, unit), field=field, suggestions=suggestions)


def say(remark: Remark, language: str = "en") -> str:
    """The remark in words."""
    sentences = SENTENCES.get(language, SENTENCES["en"])
    values = [say(value, language) if isinstance(value, Remark) else value for value in remark.values]
    unit, units, whole = UNITS.get(language, UNITS["en"])[remark.unit] if remark.unit else ("", "", "")
    return sentences[remark.key].format(*values, unit=unit, units=units, whole=whole)


UNITS: Final[Mapping[str, Mapping[Unit, tuple[str, str, str]]]] = {
    "en": {
        "second": ("second", "seconds", "minute"),
        "minute": ("minute", "minutes", "hour"),
        "hour": ("hour", "hours", "day"),
        "day of month": ("day of month", "days", "month"),
        "month": ("month", "months", "year"),
        "day of week": ("day of week", "days", "week"),
        "year": ("year", "years", "year"),
    },
    "fr": {
        "second": ("seconde", "secondes", "minute"),
        "minute": ("minute", "minutes", "heure"),
        "hour": ("heure", "heures", "jour"),
        "day of month": ("jour du mois", "jours", "mois"),
        "month": ("mois", "mois", "an"),
        "day of week": ("jour de la semaine", "jours", "semaine"),
        "year": ("année", "années", "année"),
    },
    "es": {
        "second": ("segundo", "segundos", "minuto"),
        "minute": ("minuto", "minutos", "hora"),
        "hour": ("hora", "horas", "día"),
        "day of month": ("día del mes", "días", "mes"),
        "month": ("mes", "meses", "año"),
        "day of week": ("día de la semana", "días", "semana"),
        "year": ("año", "años", "año"),
    },
}

_EN: Final = {
    # ---- warnings
    "both_days": "A day field that begins with * is an extra condition: it fires only when BOTH day fields match.",
    "either_day": "Day of month and day of week are both restricted: it fires when EITHER matches (Debian cron's rule).",
    "days_restart": "{0} in the day of month field starts again on the 1st of each month; it is not every {1} days.",
    "step_too_large": "The step of {0} is larger than the {unit} field: it fires only at {unit} {1} of each {whole}. For a period in real time write 'every {2} {units}'.",
    "step_uneven": "{0} does not divide the {whole} evenly: it starts again at {unit} {1} of each {whole}.",
    "policy_without_effect": "The policy for clock changes has no effect here: a schedule whose minute or hour begins with * follows the wall clock, through both passes of a repeated hour.",
    "seconds_are_literal": "With a second field, times are taken literally when the clocks change: a local time that is skipped does not run, one that is repeated runs twice.",
    "interval_shifts": "An interval counts real time: the local time of its runs shifts when the clocks change. For a fixed local time write a cron expression such as '0 9 * * *'.",
    "midnight_used": "No time was given: it runs at 00:00.",
    "comes_twice": "The clocks of {0} show this time twice that day: it runs at the first.",
    # ---- changes of the clocks
    "forward": "The clocks go forward from {0} to {1}: {2}.",
    "back": "The clocks go back from {0} to {1}: {2}.",
    "one_lost": "{0} does not exist, and does not run",
    "many_lost": "{0} do not exist, and do not run",
    "one_covered": "{0} does not exist; the run at {1} stands for it",
    "many_covered": "{0} do not exist; the run at {1} stands for them",
    "one_moved": "{0} does not exist; it runs at {1} instead",
    "many_moved": "{0} do not exist; one run for all of them comes at {1} instead",
    "one_first": "{0} comes twice, and runs the first time only",
    "many_first": "{0} come twice, and run the first time only",
    "one_both": "{0} comes twice, and runs both times",
    "many_both": "{0} come twice, and run both times",
    "and": "{0} and {1}",
    "and_more": "{0} and {1} more",
    # ---- refusals: text
    "too_long": "A schedule has at most {0} characters; this one has {1}.",
    "one_line": "A schedule is one line; make one job for each line.",
    "needed": "A schedule is needed: a cron expression, an interval or a date and time.",
    "character": "The schedule holds a character that does not belong there: U+{0} ({1}).",
    # ---- refusals: expressions
    "never": "{0} can never fire: no month it names has such a day.",
    "nickname": "{0} is not a nickname 0cron knows; it knows {1}.",
    "field_count": "A cron expression has 5 fields (minute hour day month weekday), 6 (second first) or 7 (second first, year last); {0} has {1}.",
    "term": "The {unit} field cannot hold {0}. {1}",
    "empty_term": "The {unit} field has an empty item. {0}",
    "use": "Use {0} to {1}.",
    "use_or": "Use {0} to {1}, or {2}.",
    "step_zero": "A step must be at least 1.",
    "backwards": "The {unit} range {0} runs backwards.",
    "write": "Write {0}.",
    "year_needs_seven": "A year needs seven fields: second minute hour day month weekday year.",
    "midnight_is_0": "Midnight is hour 0, not 24.",
    # ---- refusals: intervals and instants
    "length_unit": "{0} is not a unit of time: use seconds, minutes, hours, days or weeks.",
    "no_interval": "{0} is not an interval 0cron can read: write 'every', a whole number and a unit (or 'in', a number and a unit, for one run).",
    "wait_bounds": "A waiting time must be at least 1 second.",
    "interval_bounds": "An interval must be at least 1 second and at most 366 days.",
    "go_length": "0cron does not take '@every'; write it as '{0}'.",
    "no_moment": "{0} is not a date and time: the calendar or the clock does not have it.",
    "no_offset": "{0} is not a date and time: the offset must be between -23:59 and +23:59.",
    "moment_bounds": "{0} is outside the years 1970 to 2499.",
    "moment_skipped": "{0} does not exist in {1}: the clocks go forward over it. The first time after is {2}.",
    "too_late": "{0} is after the year 2499; give an earlier date and time.",
    "past": "{0} is in the past; give a later date and time.",
    "over": "{0} will not fire again: nothing it names is still to come.",
    "nothing_to_come": "Nothing that this schedule names is still to come.",
    # ---- refusals: zones
    "zone": "There is no time zone {0}. {1}",
    "zone_use": "Use an IANA name such as Europe/Paris.",
    "zone_meant": "Did you mean {0}?",
    "zone_or": "Did you mean {0} or {1}?",
    "zone_reversed": "{0} (The sign in Etc names is reversed: Etc/GMT-2 is two hours ahead of UTC.)",
    "two_zones": "The schedule names the time zone {0}, and timezone is {1}: give only one, or the same.",
    # ---- refusals: pieces of a crontab
    "lines": "These are {0} lines of a crontab; make one job for each.",
    "line_invalid": "{0} Without what follows it, the schedule is not valid: {1}",
    "comment": "A schedule has no comment.",
    "zone_apart": "The time zone has a field of its own.",
    "command": "This is a whole line of a crontab. 0cron cannot run the command in it: it calls URLs.",
    "two_sentences": "{0} {1}",
    "due": "It is due {0}.",
    "alone": "Give '{0}' alone.",
    "alone_with_zone": "Give '{0}' alone, and {1} as the timezone.",
    "alone_with_url": "Give '{0}' alone. The URL that curl or wget fetches is the URL of the job.",
    "settings": "A schedule is one line, without comments and settings. Give '{0}' alone.",
}

_FR: Final = {
    "both_days": "Un champ de jour qui commence par * est une condition de plus : l'horaire ne se déclenche que si les DEUX champs de jour conviennent.",
    "either_day": "Le jour du mois et le jour de la semaine sont tous deux restreints : l'horaire se déclenche dès que L'UN des deux convient (règle du cron de Debian).",
    "days_restart": "{0} dans le champ du jour du mois repart du 1er à chaque mois ; ce n'est pas « tous les {1} jours ».",
    "step_too_large": "Le pas de {0} dépasse le champ {unit} : l'horaire ne se déclenche qu'à {unit} {1} de chaque {whole}. Pour une période en temps réel, écrivez « toutes les {2} {units} ».",
    "step_uneven": "{0} ne divise pas exactement : le compte repart à {unit} {1} de chaque {whole}.",
    "policy_without_effect": "La règle des changements d'heure n'a pas d'effet ici : un horaire dont la minute ou l'heure commence par * suit l'horloge locale, aux deux passages d'une heure répétée.",
    "seconds_are_literal": "Avec un champ de secondes, les heures sont prises à la lettre au changement d'heure : une heure locale sautée ne se déclenche pas, une heure répétée se déclenche deux fois.",
    "interval_shifts": "Un intervalle compte le temps réel : l'heure locale de ses passages se décale au changement d'heure. Pour une heure locale fixe, écrivez une expression cron comme « 0 9 * * * ».",
    "midnight_used": "Aucune heure donnée : le passage est à 00:00.",
    "comes_twice": "À {0}, cette heure vient deux fois ce jour-là : le passage est à la première.",
    "forward": "Les horloges avancent de {0} à {1} : {2}.",
    "back": "Les horloges reculent de {0} à {1} : {2}.",
    "one_lost": "{0} n'existe pas, et n'a pas de passage",
    "many_lost": "{0} n'existent pas, et n'ont pas de passage",
    "one_covered": "{0} n'existe pas ; le passage de {1} en tient lieu",
    "many_covered": "{0} n'existent pas ; le passage de {1} en tient lieu",
    "one_moved": "{0} n'existe pas ; le passage a lieu à {1} à la place",
    "many_moved": "{0} n'existent pas ; un seul passage les remplace toutes, à {1}",
    "one_first": "{0} vient deux fois, et n'a de passage que la première fois",
    "many_first": "{0} viennent deux fois, et n'ont de passage que la première fois",
    "one_both": "{0} vient deux fois, et a un passage les deux fois",
    "many_both": "{0} viennent deux fois, et ont un passage les deux fois",
    "and": "{0} et {1}",
    "and_more": "{0} et {1} autres",
    "too_long": "Un horaire a au plus {0} caractères ; celui-ci en a {1}.",
    "one_line": "Un horaire tient sur une ligne ; créez une tâche pour chaque ligne.",
    "needed": "Il faut un horaire : une expression cron, un intervalle, ou une date et une heure.",
    "character": "L'horaire contient un caractère qui n'y a pas sa place : U+{0} ({1}).",
    "never": "{0} ne se déclenchera jamais : aucun des mois nommés n'a un tel jour.",
    "nickname": "{0} n'est pas un surnom que 0cron connaît ; il connaît {1}.",
    "field_count": "Une expression cron a 5 champs (minute heure jour mois jour-de-semaine), 6 (la seconde d'abord) ou 7 (la seconde d'abord, l'année à la fin) ; {0} en a {1}.",
    "term": "Le champ {unit} ne peut pas contenir {0}. {1}",
    "empty_term": "Le champ {unit} a un élément vide. {0}",
    "use": "Utilisez {0} à {1}.",
    "use_or": "Utilisez {0} à {1}, ou {2}.",
    "step_zero": "Un pas est d'au moins 1.",
    "backwards": "La plage {0} du champ {unit} est à l'envers.",
    "write": "Écrivez {0}.",
    "year_needs_seven": "Une année demande sept champs : seconde minute heure jour mois jour-de-semaine année.",
    "midnight_is_0": "Minuit est l'heure 0, pas 24.",
    "length_unit": "{0} n'est pas une unité de temps.",
    "no_interval": "{0} n'est pas un intervalle que 0cron peut lire.",
    "wait_bounds": "Une attente est d'au moins 1 seconde.",
    "interval_bounds": "Un intervalle va d'une seconde à 366 jours.",
    "go_length": "0cron ne prend pas « @every » ; écrivez « {0} ».",
    "no_moment": "{0} n'est pas une date et une heure : le calendrier ou l'horloge ne l'a pas.",
    "no_offset": "{0} n'est pas une date et une heure : le décalage va de -23:59 à +23:59.",
    "moment_bounds": "{0} est hors des années 1970 à 2499.",
    "moment_skipped": "{0} n'existe pas à {1} : les horloges avancent par-dessus. La première heure ensuite est {2}.",
    "too_late": "{0} est après l'an 2499 ; donnez une date plus proche.",
    "past": "{0} est passé ; donnez une date et une heure à venir.",
    "over": "{0} ne se déclenchera plus : rien de ce qui y est nommé n'est encore à venir.",
    "nothing_to_come": "Rien de ce que cet horaire nomme n'est encore à venir.",
    "zone": "Le fuseau horaire {0} n'existe pas. {1}",
    "zone_use": "Utilisez un nom IANA comme Europe/Paris.",
    "zone_meant": "Vouliez-vous dire {0} ?",
    "zone_or": "Vouliez-vous dire {0} ou {1} ?",
    "zone_reversed": "{0} (Le signe des noms Etc est inversé : Etc/GMT-2 a deux heures d'avance sur UTC.)",
    "two_zones": "L'horaire nomme le fuseau {0}, et le champ timezone dit {1} : n'en donnez qu'un, ou deux fois le même.",
    "lines": "Ce sont {0} lignes d'une crontab ; créez une tâche pour chacune.",
    "line_invalid": "{0} Sans ce qui le suit, l'horaire n'est pas valable : {1}",
    "comment": "Un horaire n'a pas de commentaire.",
    "zone_apart": "Le fuseau horaire a son propre champ.",
    "command": "C'est une ligne entière de crontab. 0cron ne peut pas exécuter sa commande : il appelle des URL.",
    "two_sentences": "{0} {1}",
    "due": "Elle est due ainsi : {0}.",
    "alone": "Donnez « {0} » seul.",
    "alone_with_zone": "Donnez « {0} » seul, et {1} comme timezone.",
    "alone_with_url": "Donnez « {0} » seul. L'URL que curl ou wget va chercher est l'URL de la tâche.",
    "settings": "Un horaire tient sur une ligne, sans commentaires ni réglages. Donnez « {0} » seul.",
}

_ES: Final = {
    "both_days": "Un campo de día que empieza por * es una condición más: solo se ejecuta cuando valen LOS DOS campos de día.",
    "either_day": "El día del mes y el día de la semana están restringidos: se ejecuta cuando vale CUALQUIERA de los dos (regla del cron de Debian).",
    "days_restart": "{0} en el campo del día del mes vuelve a empezar el día 1 de cada mes; no es «cada {1} días».",
    "step_too_large": "El paso de {0} es mayor que el campo {unit}: solo se ejecuta en {unit} {1} de cada {whole}. Para un período en tiempo real escriba «cada {2} {units}».",
    "step_uneven": "{0} no divide exactamente: vuelve a empezar en {unit} {1} de cada {whole}.",
    "policy_without_effect": "La regla para los cambios de hora no tiene efecto aquí: un horario cuyo minuto u hora empieza por * sigue el reloj local, en las dos pasadas de una hora repetida.",
    "seconds_are_literal": "Con un campo de segundos, las horas se toman al pie de la letra en el cambio de hora: una hora local que se salta no se ejecuta, una que se repite se ejecuta dos veces.",
    "interval_shifts": "Un intervalo cuenta el tiempo real: la hora local de sus ejecuciones se desplaza en el cambio de hora. Para una hora local fija escriba una expresión cron como «0 9 * * *».",
    "midnight_used": "No se dio hora: se ejecuta a las 00:00.",
    "comes_twice": "Los relojes de {0} muestran esta hora dos veces ese día: se ejecuta en la primera.",
    "forward": "Los relojes se adelantan de {0} a {1}: {2}.",
    "back": "Los relojes se atrasan de {0} a {1}: {2}.",
    "one_lost": "{0} no existe, y no se ejecuta",
    "many_lost": "{0} no existen, y no se ejecutan",
    "one_covered": "{0} no existe; la ejecución de {1} ocupa su lugar",
    "many_covered": "{0} no existen; la ejecución de {1} ocupa su lugar",
    "one_moved": "{0} no existe; se ejecuta a las {1} en su lugar",
    "many_moved": "{0} no existen; una sola ejecución las reemplaza a todas, a las {1}",
    "one_first": "{0} viene dos veces, y se ejecuta solo la primera",
    "many_first": "{0} vienen dos veces, y se ejecutan solo la primera",
    "one_both": "{0} viene dos veces, y se ejecuta las dos",
    "many_both": "{0} vienen dos veces, y se ejecutan las dos",
    "and": "{0} y {1}",
    "and_more": "{0} y {1} más",
    "too_long": "Un horario tiene como mucho {0} caracteres; este tiene {1}.",
    "one_line": "Un horario es una línea; cree una tarea para cada línea.",
    "needed": "Hace falta un horario: una expresión cron, un intervalo, o una fecha y hora.",
    "character": "El horario contiene un carácter que no pertenece ahí: U+{0} ({1}).",
    "never": "{0} no se ejecutará nunca: ningún mes de los que nombra tiene ese día.",
    "nickname": "{0} no es un apodo que 0cron conozca; conoce {1}.",
    "field_count": "Una expresión cron tiene 5 campos (minuto hora día mes día-de-semana), 6 (el segundo primero) o 7 (el segundo primero, el año al final); {0} tiene {1}.",
    "term": "El campo {unit} no puede contener {0}. {1}",
    "empty_term": "El campo {unit} tiene un elemento vacío. {0}",
    "use": "Use de {0} a {1}.",
    "use_or": "Use de {0} a {1}, o {2}.",
    "step_zero": "Un paso es de 1 como mínimo.",
    "backwards": "El rango {0} del campo {unit} va hacia atrás.",
    "write": "Escriba {0}.",
    "year_needs_seven": "Un año necesita siete campos: segundo minuto hora día mes día-de-semana año.",
    "midnight_is_0": "La medianoche es la hora 0, no la 24.",
    "length_unit": "{0} no es una unidad de tiempo.",
    "no_interval": "{0} no es un intervalo que 0cron pueda leer.",
    "wait_bounds": "Una espera es de 1 segundo como mínimo.",
    "interval_bounds": "Un intervalo va de un segundo a 366 días.",
    "go_length": "0cron no acepta «@every»; escriba «{0}».",
    "no_moment": "{0} no es una fecha y hora: el calendario o el reloj no la tiene.",
    "no_offset": "{0} no es una fecha y hora: el desfase va de -23:59 a +23:59.",
    "moment_bounds": "{0} está fuera de los años 1970 a 2499.",
    "moment_skipped": "{0} no existe en {1}: los relojes se adelantan sobre ella. La primera hora después es {2}.",
    "too_late": "{0} es posterior al año 2499; dé una fecha anterior.",
    "past": "{0} ya pasó; dé una fecha y hora posterior.",
    "over": "{0} no se ejecutará más: nada de lo que nombra está por venir.",
    "nothing_to_come": "Nada de lo que nombra este horario está por venir.",
    "zone": "No existe la zona horaria {0}. {1}",
    "zone_use": "Use un nombre IANA como Europe/Madrid.",
    "zone_meant": "¿Quiso decir {0}?",
    "zone_or": "¿Quiso decir {0} o {1}?",
    "zone_reversed": "{0} (El signo de los nombres Etc está invertido: Etc/GMT-2 va dos horas por delante de UTC.)",
    "two_zones": "El horario nombra la zona {0}, y el campo timezone dice {1}: dé solo una, o dos veces la misma.",
    "lines": "Son {0} líneas de un crontab; cree una tarea para cada una.",
    "line_invalid": "{0} Sin lo que le sigue, el horario no es válido: {1}",
    "comment": "Un horario no tiene comentarios.",
    "zone_apart": "La zona horaria tiene su propio campo.",
    "command": "Es una línea entera de un crontab. 0cron no puede ejecutar su comando: llama a URL.",
    "two_sentences": "{0} {1}",
    "due": "Se ejecuta así: {0}.",
    "alone": "Dé «{0}» solo.",
    "alone_with_zone": "Dé «{0}» solo, y {1} como timezone.",
    "alone_with_url": "Dé «{0}» solo. La URL que busca curl o wget es la URL de la tarea.",
    "settings": "Un horario es una línea, sin comentarios ni ajustes. Dé «{0}» solo.",
}

SENTENCES: Final[Mapping[str, Mapping[str, str]]] = {"en": _EN, "fr": _FR, "es": _ES}
