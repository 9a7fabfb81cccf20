"""Spoken digits and AN4 from small archives of real WAV files, and from parquet files with the
hub's features."""

from __future__ import annotations

import pytest
from datasets import Audio, ClassLabel, Value

from harness.errors import DataError

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")


@pytest.fixture
def fsdd(write_zip, wav):
    """Digits 0 and 7 by six speakers, recordings 0, 4, 5, 9, 10 and 49."""
    names = [
        f"{digit}_{speaker}_{index}.wav" for digit in (0, 7) for speaker in SPEAKERS for index in (0, 4, 5, 9, 10, 49)
    ]
    return write_zip("speech/fsdd.zip", {f"recordings/{name}": wav for name in names})


def test_the_official_split_goes_by_recording(fsdd, tmp_path, task, wav):
    """0-4 are test, 5-9 dev, 10-49 train; all speakers are in each; the audio is the file's
    bytes."""
    for split, indexes in {"test": {"0", "4"}, "dev": {"5", "9"}, "train": {"10", "49"}}.items():
        rows = task("fsdd").load(split, "local", tmp_path).to_list()
        assert {row["id"].rpartition("_")[2] for row in rows} == indexes
        assert {row["speaker"] for row in rows} == set(SPEAKERS) and {row["transcript"] for row in rows} == {
            "zero",
            "seven",
        }
        assert all(row["audio"] == {"bytes": wav, "path": f"{row['id']}.wav"} for row in rows)


def test_unseen_speakers_are_in_one_split_only(fsdd, tmp_path, task):
    """What is tested must be a voice that was never heard."""
    found = {
        split: {row["speaker"] for row in task("fsdd_unseen").load(split, "local", tmp_path)}
        for split in ("train", "dev", "test")
    }
    assert found == {"train": {"george", "jackson", "lucas"}, "dev": {"nicolas"}, "test": {"theo", "yweweler"}}
    assert len(task("fsdd_unseen").load("test", "local", tmp_path)) == 24


@pytest.mark.parametrize(("id", "twin"), [("fsdd_class", "fsdd"), ("fsdd_class_unseen", "fsdd_unseen")])
def test_the_classes_are_the_words(id, twin, fsdd, tmp_path, task):
    """Classification sees the same recordings, with a label in place of the transcript."""
    rows, words = (task(name).load("test", "local", tmp_path).to_list() for name in (id, twin))
    assert [(row["id"], row["label"]) for row in rows] == [(row["id"], row["transcript"]) for row in words]
    assert "transcript" not in rows[0]


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        (["recordings/seven_theo_1.wav"], "'seven_theo_1.wav' is not named like 7_jackson_32.wav"),
        (["wavs/7_theo_1.wav"], r"no recordings/\*\.wav"),
        (["recordings/7_theo_1.wav", "recordings/7_lucas_1.wav"], r"2 speakers \(lucas, theo\) are too few"),
    ],
)
def test_an_archive_of_another_kind_is_refused(members, complaint, write_zip, tmp_path, task, wav):
    """Digit and speaker are known from the name alone."""
    write_zip("speech/fsdd.zip", dict.fromkeys(members, wav))
    with pytest.raises(DataError, match=rf"fsdd\.zip: .*{complaint}"):
        task("fsdd_unseen").load("train", "local", tmp_path)


def test_fsdd_from_the_hub(task, from_parquet, wav):
    """The audio stays undecoded bytes (no audio library is needed), and the digit is checked
    against the label."""
    names = [f"7_{speaker}_{index}.wav" for speaker in SPEAKERS for index in (1, 6, 20)]
    columns = {"audio": [{"bytes": wav, "path": name} for name in names], "label": [7] * len(names)}
    for label in (Value("int64"), ClassLabel(names=list("0123456789"))):
        rows = from_parquet(task("fsdd"), "dev", columns, {"audio": Audio(), "label": label})
        assert [row["id"] for row in rows] == [f"7_{speaker}_6" for speaker in SPEAKERS]
        assert rows[0] == {
            "id": "7_george_6",
            "audio": {"bytes": wav, "path": "7_george_6.wav"},
            "transcript": "seven",
            "speaker": "george",
        }
    rows = from_parquet(task("fsdd_class_unseen"), "dev", columns, {"audio": Audio(), "label": Value("int64")})
    assert [(row["id"], row["label"]) for row in rows] == [(f"7_nicolas_{i}", "seven") for i in (1, 6, 20)]
    with pytest.raises(DataError, match=r"recording 7_george_1 has the label '3'"):
        from_parquet(
            task("fsdd"), "dev", columns | {"label": [3] * len(names)}, {"audio": Audio(), "label": Value("int64")}
        )


def an4(wav: bytes, speakers: int = 20, **replaced: str) -> dict[str, bytes | str]:
    """An archive of the official layout: two utterances a training speaker, one test utterance."""
    train = [
        (f"an4_clstk/f{i:03}/{kind}{i}-f{i:03}-b", f"{kind}{i}-f{i:03}-b")
        for i in range(speakers)
        for kind in ("an", "cen")
    ]
    members: dict[str, bytes | str] = {f"an4/wav/{path}.wav": wav for path, _ in train}
    members["an4/etc/an4_train.fileids"] = "\n".join(path for path, _ in train)
    members["an4/etc/an4_train.transcription"] = "".join(f"<s> GO {'A B'} </s> ({name})\n" for _, name in train)
    members["an4/wav/an4test_clstk/mjwl/an9-mjwl-b.wav"] = wav
    members["an4/etc/an4_test.fileids"] = "an4test_clstk/mjwl/an9-mjwl-b\n"
    members["an4/etc/an4_test.transcription"] = "RUBOUT G M SIX (an9-mjwl-b)\n"
    return members | {f"an4/etc/an4_{name}": text for name, text in replaced.items()}


def test_an4_transcripts_lose_their_marks(write_zip, tmp_path, task, wav):
    """Training lines carry sentence marks, test lines do not; both end in the utterance."""
    write_zip("speech/an4.zip", an4(wav))
    test = task("an4").load("test", "local", tmp_path).to_list()
    assert test == [
        {
            "id": "an9-mjwl-b",
            "transcript": "rubout g m six",
            "speaker": "mjwl",
            "audio": {"bytes": wav, "path": "an9-mjwl-b.wav"},
        }
    ]
    assert set(task("an4").load("train", "local", tmp_path)["transcript"]) == {"go a b"}


def test_an4_holds_out_whole_speakers(write_zip, tmp_path, task, wav):
    """The official test speakers are not in train, so dev's may not be either."""
    write_zip("speech/an4.zip", an4(wav))
    train, dev = (task("an4").load(split, "local", tmp_path) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (36, 4) and not set(train["speaker"]) & set(dev["speaker"])


@pytest.mark.parametrize(
    ("transcription", "complaint"),
    [
        ("RUBOUT G M SIX\n", r"an4_test\.transcription, line 1: 'RUBOUT G M SIX' is not a transcript"),
        ("GO (an8-mjwl-b)\n", r"line 1: an4_test\.fileids has no recording for an8-mjwl-b"),
        ("GO (an9-mjwl-b)\nGO (an9-mjwl-b)\n", r"line 2: .*transcribed twice"),
        ("\n", r"no transcript for an9-mjwl-b"),
    ],
)
def test_transcripts_that_do_not_fit_their_recordings_are_refused(
    transcription, complaint, write_zip, tmp_path, task, wav
):
    """A shifted transcript file would train on the wrong words."""
    write_zip("speech/an4.zip", an4(wav) | {"an4/etc/an4_test.transcription": transcription})
    with pytest.raises(DataError, match=complaint):
        task("an4").load("test", "local", tmp_path)


def test_an4_from_the_hub(task, from_parquet, wav):
    """The speaker comes from the recording's name; dev speakers are those of the local tier's
    rule."""
    names = [f"an{i}-f{i:03}-b" for i in range(20)]
    features = {"audio_filepath": Audio(), "duration": Value("float64"), "text": Value("string")}
    columns = {
        "audio_filepath": [{"bytes": wav, "path": f"{name}.wav"} for name in names],
        "duration": [1.0] * 20,
        "text": ["GO SIX"] * 20,
    }
    train, dev = (from_parquet(task("an4"), split, columns, features) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (18, 2)
    assert train[0]["transcript"] == "go six" and train[0]["audio"]["bytes"] == wav and train[0]["speaker"] == "f000"
    columns["audio_filepath"] = [{"bytes": wav, "path": None}] * 20
    with pytest.raises(DataError, match=r"SaffalPoosh/AN4_ASR_dataset at 7db2fb66: the utterance '' is not named like"):
        from_parquet(task("an4"), "test", columns, features)
