"""Words that carry what must not change unseen: negation, duty, limits, dates, units, numbers written out.

What belongs here: the lists, by kind, for the languages documents are commonly in (en, it, de, fr, es, pt; ja and zh
as parts of words, for they have no spaces). A word that is missing costs a label in a report, never a wrong carry:
a span carries by itself only where nothing of its reading changed at all.
"""

# Word lists read best as words.
# ruff: noqa: SIM905

from __future__ import annotations

import re

NUMBER, DATE, UNIT, CURRENCY, PERCENT = "number", "date", "unit", "currency", "percent"
NEGATION, MODAL, LIMIT, VALIDITY, NAME, STRIKE = "negation", "modal", "limit", "validity", "name", "strike-through"

_WORDS = {
    NEGATION: "not no never none nor neither without cannot nobody nothing nowhere hardly prohibited forbidden "
    "excluded "
    "disallowed unable except unless non mai nessun nessuno nessuna né senza tranne eccetto salvo vietato "
    "vietata vietati esclusa escluso esclusi nicht kein keine keinen keiner keinem keines nie niemals ohne "
    "außer verboten weder noch ne pas jamais aucun aucune sans sauf ni interdit interdite nunca jamás ningún "
    "ninguno ninguna sin excepto prohibido prohibida tampoco não nem sem exceto nenhum nenhuma proibido",
    MODAL: "may might must shall should can could will would need needs required requires optional recommended ought "
    "mandatory deve devono dovrà dovranno dovrebbe dovrebbero può possono potrà potranno obbligatorio "
    "facoltativo muss müssen soll sollen sollte sollten darf dürfen kann können doit doivent devra peut "
    "peuvent pourra devrait debe deben deberá deberán puede pueden podrá obligatorio pode podem deve devem "
    "deverá",
    LIMIT: "only least most more less fewer than before after until within up exactly minimum maximum over under "
    "above below and or solo soltanto almeno massimo minimo entro prima dopo oltre fino meno più e o nur "
    "mindestens höchstens maximal vor nach bis über unter weniger mehr und oder seulement moins plus avant "
    "après jusqu et ou sólo menos más antes después hasta y",
    VALIDITY: "deprecated obsolete expired withdrawn repealed void superseded draft discontinued abolished cancelled "
    "canceled suspended retired archived former abrogato abrogata obsoleto scaduto sospeso annullato "
    "aufgehoben veraltet ungültig abgelaufen abrogé obsolète périmé derogado caducado vencido anulado",
    DATE: "january february march april may june july august september october november december jan feb mar apr "
    "jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday today "
    "yesterday tomorrow gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica januar februar märz mai juni juli "
    "oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag janvier février mars avril "
    "juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi "
    "dimanche enero febrero abril mayo junio julio septiembre octubre noviembre diciembre lunes martes "
    "miércoles jueves viernes sábado domingo",
    UNIT: "day days hour hours week weeks month months year years minute minutes second seconds business working "
    "calendar mile miles foot feet inch inches pound pounds ounce kg g mg km m cm mm kb mb gb tb kib mib gib "
    "w kw mw kwh v ms s h min l ml ha byte bytes bit bits giorno giorni ora ore settimana settimane mese mesi "
    "anno anni lavorativi tag tage tagen stunde stunden woche wochen monat monate monaten jahr jahre jahren "
    "werktage jour jours heure heures semaine semaines mois an ans année años año día días hora horas semana "
    "semanas mes meses dia dias mês anos daily weekly monthly quarterly yearly annually annual",
    CURRENCY: "eur usd gbp jpy chf cny cad aud euro euros dollar dollars yen sterling franc francs cent cents",
    PERCENT: "percent percentage prozent pourcent percento",
    NUMBER: "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million billion half quarter third twice double triple once first uno due tre quattro cinque sei sette "
    "otto nove dieci venti trenta cento mille doppio zwei drei vier fünf sechs sieben acht neun zehn zwanzig "
    "dreißig hundert tausend deux trois quatre cinq sept huit neuf dix vingt trente cent dos tres cuatro "
    "cinco seis siete ocho nueve diez veinte treinta cien mil",
}  # fmt: skip

KINDS_OF: dict[str, tuple[str, ...]] = {}
for _kind, _listed in _WORDS.items():
    for _word in dict.fromkeys(_listed.split()):
        KINDS_OF[_word] = (*KINDS_OF.get(_word, ()), _kind)

UNSPACED = re.compile(
    "(?P<negation>ません|なかった|なければ|ない|なく|なし|ずに|不可|禁止|除[くき]|以外|非|未|不|無|没|莫|勿|别)"
    "|(?P<modal>べき|てもよい|できる|必要|必須|任意|可能|必须|可以|应当)"
    "|(?P<limit>以上|以下|以内|未満|超|まで|より|のみ|だけ|最大|最小|前|後|及び|又は|または)"
    "|(?P<validity>廃止|失効|無効|中止|旧|停止)"
    "|(?P<percent>パーセント|割)"
    "|(?P<currency>円|ドル|ユーロ|元)"
    "|(?P<unit>営業日|時間|週間|か月|ヶ月|ヵ月|カ月|箇月|日|週|月|年|分|秒|個|名|人|回|件|歳)"
)
"""Japanese and Chinese; the alternatives of a kind stand before shorter ones that they contain."""

NOT_NAMES = frozenset(
    "the a an if when where who which what how this that these those it its in on at for of to from by with as and or "
    "but you your we our they their he she his her i is are was were be been do does did have has had all any each "
    "every some other such there here then so see also please note".split()
)
"""Capitalised at the beginning of a sentence, and no names."""
